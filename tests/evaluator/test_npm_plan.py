"""Frameworks, package managers and workspaces are read off package.json and the settings beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.serve_plan import ServePlan, UnknownApplication, learn_plan

Files = dict[str, object]
Learn = Callable[[Files], ServePlan]
RUN_BUILD, RUN_START = ["npm", "run", "build"], ["npm", "run", "start"]


@pytest.fixture
def learn(tmp_path: Path) -> Learn:
    """The plan of an application given as files: path → text, or an object for JSON."""

    def learn(files: Files) -> ServePlan:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return learn_plan(tmp_path)

    return learn


def package(*needs: str, build: str | None = None, **scripts: str) -> dict[str, object]:
    versions = {name.rpartition("@")[0]: name.rpartition("@")[2] for name in needs}
    return {"scripts": scripts | ({"build": build} if build else {}), "dependencies": versions}


def angular(builder: str = "@angular/build:application", **options: object) -> Files:
    target = {"builder": builder, "options": options}
    return {"projects": {"lib": {"projectType": "library"}, "shop": {"architect": {"build": target}}}}


@pytest.mark.parametrize(
    ("files", "output", "spa"),
    [
        ({"package.json": package("next@15", build="next build"), "next.config.ts": "output: 'export'"}, "out", False),
        (
            {
                "package.json": package("next@15", build="next build"),
                "next.config.js": "output: 'export', distDir: 'site'",
            },
            "site",
            False,
        ),
        ({"package.json": package("next@12", build="next build && next export")}, "out", False),
        ({"package.json": package("nuxt@4", build="nuxt generate")}, ".output/public", True),
        ({"package.json": package("nuxt@3", generate="nuxt generate")}, ".output/public", True),
        ({"package.json": package("nuxt@2.17.0", build="nuxt generate")}, "dist", True),
        (
            {
                "package.json": package("@sveltejs/kit@2", "vite@7", build="vite build"),
                "svelte.config.js": "import a from '@sveltejs/adapter-static'; a({ pages: 'site' })",
            },
            "site",
            True,
        ),
        ({"package.json": package("@angular/cli@20", build="ng build"), "angular.json": angular()}, "dist/shop/browser", True),
        (
            {"package.json": package("@angular/cli@20"), "angular.json": angular(outputPath={"base": "www", "browser": ""})},
            "www",
            True,
        ),
        (
            {
                "package.json": package("@angular/cli@12", build="ng build"),
                "angular.json": angular("@angular-devkit/build-angular:browser", outputPath="dist/old"),
            },
            "dist/old",
            True,
        ),
        (
            {
                "package.json": package("@angular/cli@20", build="ng build"),
                "angular.json": angular(ssr={"entry": "src/server.ts"}, outputMode="static"),
            },
            "dist/shop/browser",
            True,
        ),
        ({"package.json": package("astro@5", build="astro build", start="astro dev")}, "dist", False),
        ({"package.json": package("astro@5"), "astro.config.mjs": "outDir: './public_html'"}, "public_html", False),
        (
            {
                "package.json": package("@react-router/dev@7", "vite@7", build="react-router build"),
                "react-router.config.ts": "export default { ssr: false }",
            },
            "build/client",
            True,
        ),
        ({"package.json": package("gatsby@5", build="gatsby build")}, "public", False),
        ({"package.json": package("@11ty/eleventy@3", build="eleventy")}, "_site", False),
        ({"package.json": package("@docusaurus/core@3", build="docusaurus build")}, "build", False),
        ({"package.json": package("@rsbuild/core@1", build="rsbuild build")}, "dist", True),
        (
            {
                "package.json": package("webpack@5", build="webpack"),
                "webpack.config.js": "path: path.join(__dirname, 'public', 'built')",
            },
            "public/built",
            True,
        ),
    ],
)  # fmt: skip
def test_what_leaves_files_is_served_from_where_it_leaves_them(
    learn: Learn, files: Files, output: str, spa: bool
) -> None:
    plan = learn(files)
    assert (plan.kind, plan.output, plan.spa_fallback, plan.start) == ("npm", output, spa, [])
    assert plan.build


@pytest.mark.parametrize(
    ("files", "start", "base_path"),
    [
        (
            {"package.json": package("next@16", build="next build", start="next start"), "next.config.mjs": "basePath: '/docs'"},
            RUN_START,
            "/docs/",
        ),
        ({"package.json": package("next@16", start="next dev")}, ["npm", "exec", "--no", "--", "next", "start"], "/"),
        ({"package.json": package("next@16", build="next build", start="node server.js")}, RUN_START, "/"),
        ({"package.json": package("nuxt@4", build="nuxt build", generate="nuxt generate")}, ["node", ".output/server/index.mjs"], "/"),
        ({"package.json": package("nuxt@4"), "nuxt.config.ts": "app: { baseURL: '/shop/' }"}, ["node", ".output/server/index.mjs"], "/shop/"),
        ({"package.json": package("nuxt@2.17.0", build="nuxt build", start="nuxt start")}, ["npm", "exec", "--no", "--", "nuxt", "start"], "/"),
        (
            {"package.json": package("@sveltejs/kit@2", "vite@7"), "svelte.config.js": "from '@sveltejs/adapter-node'"},
            ["node", "build"],
            "/",
        ),
        (
            {
                "package.json": package("@sveltejs/kit@2", "vite@7"),
                "svelte.config.js": "from '@sveltejs/adapter-vercel'; kit: { paths: { base: '/app' } }",
            },
            ["npm", "exec", "--no", "--", "vite", "preview"],
            "/app/",
        ),
        (
            {"package.json": package("@angular/cli@20"), "angular.json": angular(ssr=True)},
            ["node", "dist/shop/server/server.mjs"],
            "/",
        ),
        (
            {"package.json": package("astro@5"), "astro.config.mjs": "from '@astrojs/node'; base: 'blog'"},
            ["node", "dist/server/entry.mjs"],
            "/blog/",
        ),
        (
            {"package.json": package("@react-router/dev@7", build="react-router build", start="react-router-serve ./x")},
            RUN_START,
            "/",
        ),
    ],
)  # fmt: skip
def test_what_renders_on_a_server_is_built_and_started(
    learn: Learn, files: Files, start: list[str], base_path: str
) -> None:
    plan = learn(files)
    assert (plan.output, plan.start, plan.base_path, plan.spa_fallback) == (None, start, base_path, False)
    assert plan.build


def test_a_nuxt_preset_of_some_host_is_overruled(learn: Learn) -> None:
    plan = learn({"package.json": package("nuxt@4"), "nuxt.config.ts": "nitro: { preset: 'vercel' }"})
    assert plan.env == {"NITRO_PRESET": "node-server"}


@pytest.mark.parametrize(
    "scripts",
    [
        {"dev": 'concurrently -k "npm run api" "npm:web"', "api": "node --watch server.js", "web": "vite"},
        {"dev": "run-p dev:*", "dev:api": "tsx watch src/server.ts", "dev:web": "vite --host"},
        {"start": "node server.js & vite", "build": "vite build"},
        {"dev": "npm-run-all --parallel api web", "api": "json-server db.json", "web": "react-scripts start"},
    ],
)
def test_pages_and_a_server_that_run_side_by_side_are_both_run(learn: Learn, scripts: dict[str, str]) -> None:
    plan = learn({"package.json": package("vite@7", **scripts), "index.html": ""})
    assert plan.start == ["npm", "run", "start" if "start" in scripts else "dev"]
    assert (plan.output, plan.env["NODE_ENV"]) == (None, "development")


@pytest.mark.parametrize("dev", ["node prepare.js && vite", "vite", "tsc -w & vite", 'concurrently "tsc -w" "vite"'])
def test_pages_that_run_alone_are_built(learn: Learn, dev: str) -> None:
    plan = learn({"package.json": package("vite@7", dev=dev, preview="vite preview"), "index.html": ""})
    assert (plan.output, plan.start, plan.fallback) == ("dist", [], ["npm", "run", "preview"])


@pytest.mark.parametrize(
    ("files", "start"),
    [
        ({"package.json": package(dev="nodemon server.js")}, ["npm", "run", "dev"]),
        ({"package.json": package(serve="bun server.ts")}, ["npm", "run", "serve"]),
        ({"package.json": package(), "server.js": "http.createServer(f).listen(1)"}, ["node", "server.js"]),
        ({"package.json": {"main": "main.js"}, "main.js": "app.listen(process.env.PORT)"}, ["node", "main.js"]),
        ({"package.json": package(start="gulp serve")}, RUN_START),
    ],
)
def test_without_a_build_a_script_or_file_that_serves_is_started(
    learn: Learn, files: Files, start: list[str]
) -> None:
    assert learn(files).start == start


def test_a_script_nobody_knows_comes_after_a_page_that_is_there(learn: Learn) -> None:
    assert learn({"package.json": package(start="gulp serve"), "index.html": ""}).kind == "static"


def test_a_member_of_a_workspace_is_installed_and_built_from_the_workspace(learn: Learn) -> None:
    plan = learn(
        {
            "package.json": {"workspaces": ["apps/*", "packages/**"], "scripts": {"lint": "eslint"}},
            "package-lock.json": "{}",
            "packages/ui/package.json": package("vite@7", build="vite build"),
            "apps/web/package.json": package("vite@7", build="vite build", preview="vite preview"),
            "apps/web/index.html": "",
        }
    )
    assert (plan.root, plan.install, plan.lock) == (".", ["npm", "ci"], "package-lock.json")
    assert plan.build == ["env", "--chdir=apps/web", *RUN_BUILD]
    assert plan.output == "apps/web/dist"
    assert plan.fallback == ["env", "--chdir=apps/web", "npm", "run", "preview"]


def test_a_workspace_that_builds_all_its_members_does_so(learn: Learn) -> None:
    plan = learn(
        {
            "package.json": {"scripts": {"build": "turbo run build"}, "packageManager": "pnpm@9.15.4"},
            "pnpm-workspace.yaml": "packages:\n  - 'apps/*'\n",
            "pnpm-lock.yaml": "lockfileVersion: '9.0'",
            "apps/web/package.json": package("next@16", build="next build", start="next start"),
        }
    )
    assert (plan.manager, plan.install) == ("pnpm@9.15.4", ["pnpm", "install", "--frozen-lockfile"])
    assert (plan.build, plan.start) == (RUN_BUILD, ["env", "--chdir=apps/web", *RUN_START])


def test_a_top_that_only_leads_into_a_folder_is_not_the_application(learn: Learn) -> None:
    plan = learn(
        {
            "package.json": package(start="cd client && npm start", build="npm --prefix client run build"),
            "client/package.json": package(
                "react-scripts@5", start="react-scripts start", build="react-scripts build"
            ),
            "client/public/index.html": "",
        }
    )
    assert (plan.root, plan.output, plan.build) == ("client", "client/build", RUN_BUILD)


def test_a_server_whose_pages_are_a_package_of_their_own_is_installed_in_both(learn: Learn) -> None:
    build = "npm install --prefix client && npm run build --prefix client"
    files: Files = {
        "package.json": package("express@5", start="node server.js", build=build),
        "client/package.json": package("react-scripts@5", build="react-scripts build", start="react-scripts start"),
        "client/package-lock.json": "{}",
    }
    plan = learn(files)
    assert (plan.start, plan.build, plan.also) == (RUN_START, RUN_BUILD, {"client": ["npm", "ci"]})
    dev = package("express@5", dev='concurrently "node server.js" "cd client && npm start"')
    both = learn({**files, "package.json": dev})
    assert (both.start, both.port, both.also) == (["npm", "run", "dev"], 3000, {"client": ["npm", "ci"]})


@pytest.mark.parametrize(
    ("files", "manager", "install"),
    [
        ({"yarn.lock": "# yarn lockfile v1"}, "yarn@1.22.22", ["npm", "install"]),
        (
            {"yarn.lock": "# x\n\n__metadata:\n  version: 8\n"},
            "@yarnpkg/cli-dist@4",
            ["yarn", "install", "--immutable"],
        ),
        ({"yarn.lock": "__metadata:\n  version: 6\n"}, "@yarnpkg/cli-dist@3", ["yarn", "install", "--immutable"]),
        ({"pnpm-lock.yaml": "lockfileVersion: 5.4"}, "pnpm@7", ["pnpm", "install", "--frozen-lockfile"]),
        ({"npm-shrinkwrap.json": "{}"}, "", ["npm", "ci"]),
        ({}, "", ["npm", "install"]),
    ],
)
def test_each_lock_is_read_by_the_manager_that_wrote_it(
    learn: Learn, files: Files, manager: str, install: list[str]
) -> None:
    plan = learn({"package.json": package("vite@7", build="vite build"), "index.html": "", **files})
    assert (plan.manager, plan.install) == (manager, install)


@pytest.mark.parametrize("main", ["../outside.js", "/dev/zero", "\0", "link.js", 7])
def test_nothing_outside_the_package_is_read(learn: Learn, tmp_path: Path, main: object) -> None:
    (tmp_path.parent / "outside.js").write_text("app.listen(1)")
    (tmp_path / "link.js").symlink_to(tmp_path.parent / "outside.js")
    assert learn({"package.json": {"main": main}, "index.html": ""}).kind == "static"


def test_files_that_mean_to_be_tiresome_are_read_in_a_moment(learn: Learn) -> None:
    scripts = {f"a:{number}": "run-p a:*" for number in range(2000)}
    scripts |= {"dev": "run-p a:*", "start": "next " * 100_000}
    began = time.monotonic()
    learn(
        {
            "package.json": {"scripts": scripts, "workspaces": ["*"]},
            "index.html": "<base " * 300_000,
            ".env.example": "A=" + " " * 400_000 + "x",
            "pnpm-workspace.yaml": "[" * 100_000,
        }
    )
    assert time.monotonic() - began < 5


def test_an_example_of_an_environment_file_stands_in_for_the_file(learn: Learn) -> None:
    example = '# settings\nexport VITE_TITLE="Lamp shop"\nVITE_KEY=abc # public\nEMPTY=\nNODE_ENV=test\nPATH=/x\n'
    files: Files = {"package.json": package("vite@7", build="vite build"), "index.html": "", ".env.example": example}
    assert learn(files).env == {"VITE_TITLE": "Lamp shop", "VITE_KEY": "abc"}
    assert learn({**files, ".env": "VITE_TITLE=Mine"}).env == {}


def test_what_was_looked_for_names_the_way_out(learn: Learn) -> None:
    with pytest.raises(UnknownApplication, match=r"serve\.json"):
        learn({"notes.txt": ""})
