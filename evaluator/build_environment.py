"""Environment variables of builds: quiet, and with the registry mirror as the only address."""

from __future__ import annotations

QUIET = {
    "BROWSER": "none",
    "NO_COLOR": "1",
    "FORCE_COLOR": "0",
    "NEXT_TELEMETRY_DISABLED": "1",
    "ASTRO_TELEMETRY_DISABLED": "1",
    "NG_CLI_ANALYTICS": "false",
    "DISABLE_OPENCOLLECTIVE": "1",
    "HUSKY": "0",
    "PUPPETEER_SKIP_DOWNLOAD": "1",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    "CYPRESS_INSTALL_BINARY": "0",
    "ELECTRON_SKIP_BINARY_DOWNLOAD": "1",
    "npm_config_audit": "false",
    "npm_config_fetch_retries": "0",  # a build that installs anew must fail at once, not after a minute
}
"""No downloads that a page does not need, no telemetry, no colours. CI stays unset: with it create-react-app
turns every warning into a failure."""
NPM = {
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_progress": "false",
    "npm_config_update_notifier": "false",
    "npm_config_fetch_retries": "0",  # the mirror tries again by itself
    "npm_config_fetch_timeout": "200000",
    "npm_config_omit_lockfile_registry_resolved": "true",
    "npm_config_replace_registry_host": "always",  # locks name the registry of whoever wrote them
}
YARN = {
    "YARN_ENABLE_TELEMETRY": "0",
    "YARN_HTTP_RETRY": "0",
    "YARN_IGNORE_PATH": "1",  # a release kept in the tree may be left out of a submission
    "YARN_NODE_LINKER": "node-modules",  # npm runs the scripts, and knows no other way to packages
    "YARN_UNSAFE_HTTP_WHITELIST": "127.0.0.1",
}


def registry_settings(address: str) -> dict[str, str]:
    """Settings by which every package manager asks the registry at `address` and nobody else."""
    return NPM | YARN | {
        "npm_config_registry": address, "pnpm_config_registry": address, "YARN_NPM_REGISTRY_SERVER": address,
    }  # fmt: skip
