import { drawList, startList } from "./list.js";
import { isPlaying, load, pause, play, startPlayer } from "./player.js";
import { remembered } from "./store.js";

const refresh = () => drawList(isPlaying());

startList((id) => {
  if (id === remembered().current && isPlaying()) {
    pause();
    return;
  }
  if (id !== remembered().current) load(id);
  play();
});
startPlayer(refresh);
load(remembered().current);
refresh();
