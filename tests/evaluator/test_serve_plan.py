"""Serve plans are read off an application's files; what cannot be recognised says what was looked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.serve_plan import ServePlan, UnknownApplication, fits, learn_plan, mount_path

APPS = Path(__file__).parent.parent / "apps"
Files = dict[str, str | dict[str, object]]
Plant = Callable[[Files], Path]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Makes a tree: path → text, or an object for JSON."""
    count = iter(range(100))

    def make(files: Files) -> Path:
        tree = tmp_path / f"tree{next(count)}"
        tree.mkdir()
        for name, content in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tree

    return make


def package(*dev: str, dependencies: dict[str, str] | None = None, **scripts: str) -> dict[str, object]:
    versions = {name.rpartition("@")[0]: name.rpartition("@")[2] for name in dev}
    return {"scripts": scripts, "devDependencies": versions, "dependencies": dependencies or {}}


def test_a_page_at_the_top_is_served_as_it_is(plant: Plant) -> None:
    assert learn_plan(plant({"index.html": "<h1>x", "app.js": "1"})) == ServePlan(kind="static")


def test_client_side_routes_ask_for_the_fallback(plant: Plant) -> None:
    tree = plant({"index.html": "<h1>x", "js/app.js": "history.pushState({}, '', '/about')"})
    assert learn_plan(tree).spa_fallback
    assert not learn_plan(plant({"index.html": "<a href='#a'>", "js/app.js": "location.hash = 'a'"})).spa_fallback


def test_a_page_in_a_folder_is_opened_there_below_the_whole_tree(plant: Plant) -> None:
    tree = plant({"shop/index.html": "<img src='../shared/x.png'>", "shared/x.png": "", "_attachments/a.html": ""})
    plan = learn_plan(tree)
    assert (plan.root, plan.entry, plan.index) == (".", "shop/", "index.html")


def test_a_folder_whose_page_has_root_absolute_addresses_is_the_root(plant: Plant) -> None:
    plan = learn_plan(plant({"public/index.html": "<script src='/js/app.js'>", "public/js/app.js": ""}))
    assert (plan.root, plan.entry) == ("public", "")


def test_without_an_index_the_shallowest_page_is_opened(plant: Plant) -> None:
    plan = learn_plan(plant({"login.html": "", "pages/a.html": "", "node_modules/x/index.html": ""}))
    assert (plan.entry, plan.index) == ("", "login.html")


def test_vite_builds_to_dist_or_where_its_configuration_says(plant: Plant) -> None:
    app: Files = {"package.json": package("vite@^7.0.0", build="vite build", start="vite"), "index.html": ""}
    plan = learn_plan(plant({**app, "package-lock.json": "{}"}))
    assert (plan.kind, plan.tool, plan.install, plan.build) == ("npm", "vite", ["npm", "ci"], ["npm", "run", "build"])
    assert (plan.output, plan.start, plan.spa_fallback) == ("dist", [], True)
    assert learn_plan(plant({**app, "vite.config.ts": "build: { outDir: '../www/x' }"})).output == "dist"
    assert learn_plan(plant({**app, "vite.config.ts": "build: { outDir: 'www' }"})).output == "www"
    resolved = "build: { outDir: path.resolve(__dirname, 'site') }"
    assert learn_plan(plant({**app, "vite.config.js": resolved})).output == "site"
    flagged = package("vite@7", build="vite build --outDir built")
    assert learn_plan(plant({"package.json": flagged, "index.html": ""})).output == "built"
    rooted: Files = {
        "package.json": package("vite@7"),
        "client/index.html": "",
        "vite.config.js": "  root: 'client',",
    }
    assert learn_plan(plant(rooted)).output == "client/dist"
    assert learn_plan(plant(rooted)).build == ["npm", "exec", "--no", "--", "vite", "build"]


@pytest.mark.parametrize(
    ("manifest", "output", "env"),
    [
        (package("react-scripts@5.0.1", build="react-scripts build", start="react-scripts start"), "build", {}),
        (
            package("react-scripts@^3.4.0", build="react-scripts build"),
            "build",
            {"NODE_OPTIONS": "--openssl-legacy-provider"},
        ),
        (package("@vue/cli-service@~5.0.0", build="vue-cli-service build"), "dist", {}),
        (
            package("@vue/cli-service@4.5.0", build="vue-cli-service build"),
            "dist",
            {"NODE_OPTIONS": "--openssl-legacy-provider"},
        ),
        (package("parcel@2.12.0", build="parcel build index.html --dist-dir public"), "public", {}),
        (package("webpack@5.90.0", build="webpack", start="webpack serve"), "dist", {}),
        (package(build="node make.js"), "dist", {}),
        (package("react-dev-utils@12", build="node scripts/build.js", start="node scripts/start.js"), "build", {}),
    ],
    ids=["cra", "old-cra", "vue", "old-vue", "parcel", "webpack", "own-script", "ejected-cra"],
)
def test_bundlers_are_known_with_their_output(
    plant: Plant, manifest: dict[str, object], output: str, env: dict[str, str]
) -> None:
    plan = learn_plan(plant({"package.json": manifest, "index.html": ""}))
    assert (plan.kind, plan.output, plan.env, plan.start) == ("npm", output, env, [])
    assert plan.build == ["npm", "run", "build"]


def test_webpacks_configuration_names_the_output(plant: Plant) -> None:
    config = "output: { path: path.resolve(__dirname, 'public/built') }"
    tree = plant({"package.json": package("webpack@5", build="webpack"), "webpack.config.js": config})
    assert learn_plan(tree).output == "public/built"


@pytest.mark.parametrize(
    "start",
    [
        "node server.js",
        "cross-env NODE_ENV=production node ./server.js",
        "npm run serve",
        "npm run build && node server.js",
        "next start -p 3000",
        "NODE_ENV=production npx tsx src/server.ts",
    ],
)
def test_a_start_script_that_ends_in_a_server_is_started(plant: Plant, start: str) -> None:
    manifest = package(dependencies={"express": "4"}, start=start, serve="nodemon server.js", build="vite build")
    plan = learn_plan(plant({"package.json": manifest, "index.html": ""}))
    assert (plan.start, plan.output, plan.build) == (["npm", "run", "start"], None, ["npm", "run", "build"])


def test_a_server_without_dependencies_needs_no_install() -> None:
    plan = learn_plan(APPS / "servers")
    assert (plan.kind, plan.install, plan.build, plan.start) == ("npm", [], [], ["npm", "run", "start"])


def test_next_that_exports_is_static(plant: Plant) -> None:
    manifest = package(dependencies={"next": "15"}, start="next start", build="next build")
    tree = plant({"package.json": manifest, "next.config.mjs": "export default { output: 'export' }"})
    assert (learn_plan(tree).output, learn_plan(tree).start) == ("out", [])


@pytest.mark.parametrize("start", ["npx serve .", "live-server", "http-server -p 8080", "python3 -m http.server"])
def test_a_static_server_as_start_script_is_replaced_by_ours(plant: Plant, start: str) -> None:
    plan = learn_plan(plant({"package.json": package("serve@14", start=start), "index.html": ""}))
    assert (plan.kind, plan.root) == ("static", ".")


def test_the_application_is_found_in_a_sub_folder(plant: Plant) -> None:
    plan = learn_plan(
        plant(
            {
                "package.json": package("prettier@3", lint="prettier ."),
                "api/package.json": package(build="tsc"),
                "frontend/package.json": package("vite@7", build="vite build"),
                "frontend/index.html": "",
                "frontend/.nvmrc": "v20.11.0\n",
            }
        )
    )
    assert (plan.root, plan.output, plan.node) == ("frontend", "frontend/dist", "v20.11.0")


def test_the_lock_file_decides_the_package_manager(plant: Plant) -> None:
    app: Files = {"package.json": package("vite@7", build="vite build"), "index.html": ""}
    assert learn_plan(plant(app)).install == ["npm", "install"]
    pnpm = learn_plan(plant({**app, "pnpm-lock.yaml": "lockfileVersion: '6.0'\n"}))
    assert (pnpm.package_manager, pnpm.manager) == ("pnpm", "pnpm@8")
    pinned: Files = {"package.json": {**package("vite@7"), "packageManager": "pnpm@9.15.4+sha512.abc"}}
    assert learn_plan(plant({**pinned, "pnpm-lock.yaml": "lockfileVersion: '9.0'"})).manager == "pnpm@9.15.4"
    yarn = learn_plan(plant({**app, "yarn.lock": "# yarn lockfile v1"}))
    assert (yarn.package_manager, yarn.lock, yarn.install) == ("yarn", "yarn.lock", ["npm", "install"])


def test_engines_are_noted(plant: Plant) -> None:
    plan = learn_plan(
        plant({"package.json": {**package("vite@7"), "engines": {"node": ">=20.19"}}, "index.html": ""})
    )
    assert plan.node == ">=20.19"


def test_a_tree_without_an_application_says_what_was_looked_for(plant: Plant) -> None:
    tree = plant({"notes.txt": "", "lib/package.json": package("eslint@9")})
    with pytest.raises(UnknownApplication) as error:
        learn_plan(tree)
    said = str(error.value)
    assert "lib/package.json: neither builds nor starts" in said
    assert "HTML page" in said
    assert "notes.txt" in said


def test_a_broken_manifest_is_named(plant: Plant) -> None:
    with pytest.raises(UnknownApplication, match=r"package\.json is not readable as JSON"):
        learn_plan(plant({"package.json": "{,}", "index.html": ""}))


def test_a_manifest_with_a_byte_order_mark_is_read(plant: Plant) -> None:
    tree = plant({"package.json": "\ufeff" + json.dumps(package("vite@7")), "index.html": ""})
    assert learn_plan(tree).tool == "vite"


def test_links_and_hidden_folders_are_not_followed(plant: Plant, tmp_path: Path) -> None:
    tree = plant({".cache/index.html": "", "a.txt": ""})
    (tmp_path / "outside.html").touch()
    (tree / "index.html").symlink_to(tmp_path / "outside.html")
    with pytest.raises(UnknownApplication):
        learn_plan(tree)


def test_a_plan_fits_as_long_as_what_decides_serving_is_the_same(plant: Plant) -> None:
    app: Files = {"package.json": package("vite@7", build="vite build"), "index.html": "", "package-lock.json": "{}"}
    plan = learn_plan(plant(app))
    same: Files = {**app, "package.json": package("vite@6", "react@19", build="vite build"), "src/new.js": ""}
    same.pop("package-lock.json")
    assert fits(plan, plant(same)) is None
    moved = fits(plan, plant({**app, "vite.config.js": "outDir: 'public'"}))
    assert moved is not None and "output was 'dist' and is 'public'" in moved
    assert "kind was 'npm'" in (fits(plan, plant({"index.html": ""})) or "")
    assert "no application was recognised" in (fits(plan, plant({"a.txt": ""})) or "")


def test_a_plan_is_plain_json_and_knows_no_other_keys(plant: Plant) -> None:
    plan = learn_plan(plant({"index.html": ""}))
    assert ServePlan.model_validate_json(plan.model_dump_json()) == plan
    with pytest.raises(ValueError, match="extra"):
        ServePlan.model_validate({"kind": "static", "folder": "x"})


@pytest.mark.parametrize(
    ("page", "base"),
    [
        ("<script src='/myapp/static/a.js'></script><link href='/myapp/icon.png'>", "/myapp/"),
        ("<script src='/static/a.js'></script>", "/"),
        ("<script src='./static/a.js'></script><a href='/elsewhere'>", "/"),
        ("<script src='/team/my%20app/static/a.js?v=1'></script><link href='/missing.css'>", "/team/my app/"),
        ("<link href='//cdn.example/static/a.js'>", "/"),
    ],
)
def test_the_base_path_is_read_off_built_pages(plant: Plant, page: str, base: str) -> None:
    tree = plant({"index.html": page, "static/a.js": "", "icon.png": ""})
    assert mount_path(tree, tree / "index.html") == base


def test_a_page_of_any_number_of_long_addresses_is_read_in_no_time(tmp_path: Path) -> None:
    """20 s of one processor for 16 KB it was, and without an end for 2 MB."""
    address = "/a" * 100_000
    (tmp_path / "index.html").write_text(f"<a href='{address}'>1</a>" * 5 + "<a href='/b/c'>2</a>" * 100_000)
    assert mount_path(tmp_path, tmp_path / "index.html") == "/"
    assert learn_plan(tmp_path).kind == "static"
