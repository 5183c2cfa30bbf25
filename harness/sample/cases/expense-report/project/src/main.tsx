import { render } from "preact";
import { App } from "./App";
import "./styles/base.css";
import "./styles/report.css";
import "./styles/form.css";

render(<App />, document.querySelector("#app")!);
