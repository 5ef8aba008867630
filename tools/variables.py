"""The variables of the environment that swink reads or sets, for docs/reference/variables.md.

A test holds these tables to the reads of the environment in src (tests/test_reference_pages.py).
"""

OF_SWINK = {
    "SWINK_CACHE_DIR": "where models are kept; else the cache directory of the system",
    "SWINK_EVAL_KEY": "signs the results of evaluations, and verifies them",
    "SWINK_LOCAL_STATES": "`off`: what a local model has read is not kept for the next start",
    "SWINK_LOCAL_THREADS": "threads of a local model",
    "SWINK_LOCAL_VERBOSE": "the local engine writes its own log",
    "SWINK_MODEL": "the model of the command, before the default of the settings",
    "SWINK_PLAIN": "the plain chat, in place of the terminal interface",
    "SWINK_PROJECT_DIR": "set for hooks, as `CLAUDE_PROJECT_DIR`: the folder that swink works in",
    "SWINK_PROXY_TOKEN": "the token for a proxy of yours",
    "SWINK_PROXY_TOKENS": "the tokens that `swink serve proxy` takes",
    "SWINK_PROXY_URL": "the address of a proxy of yours",
    "SWINK_SERVE_KEY": "the key that clients of `swink serve model` send",
    "SWINK_SERVE_TOKEN": "the token that clients of a served agent send",
    "SWINK_SESSIONS_DIR": "where conversations are saved",
    "SWINK_STATUS": "set for a status command: what it may show, as JSON",
}

BESIDE_KEYS = {
    "bedrock": "or a pair of AWS keys",
    "azure": "or Entra ID",
    "azure-responses": "or Entra ID",
    "vertex": "or Google credentials",
    "ollama": "for ollama.com",
}
"""What is said of a key beside its variables; `OF_PROVIDERS` has those of what may take its place."""

OF_PROVIDERS = {
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY": "`bedrock`: a pair of AWS keys, where no Bedrock key is set",
    "AWS_SESSION_TOKEN, AWS_SECURITY_TOKEN": "`bedrock`: the token of keys that expire",
    "AWS_PROFILE, AWS_DEFAULT_PROFILE": "`bedrock`: the profile with keys and region; else `default`",
    "AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE": "`bedrock`: the AWS files, else those in `~/.aws`",
    "AWS_REGION, AWS_DEFAULT_REGION": "`bedrock`: the region, before that of the profile",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME, AWS_ENDPOINT_URL": "`bedrock`: the endpoint, the first that is set",
    "AZURE_OPENAI_AD_TOKEN": "`azure`, `azure-responses`: a token of Entra ID",
    "AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET": (
        "`azure`, `azure-responses`: an application in Entra ID, where no key is set"
    ),
    "AZURE_AUTHORITY_HOST": "`azure`, `azure-responses`: where that application logs in, for other clouds",
    "OPENAI_API_VERSION": "`azure`: the version of its API; else the newest",
    "GOOGLE_APPLICATION_CREDENTIALS": "`vertex`: the file with Google credentials",
    "CLOUDSDK_CONFIG": "`vertex`: the folder of `gcloud`, with the credentials of its login",
    "GOOGLE_CLOUD_PROJECT, ANTHROPIC_VERTEX_PROJECT_ID": (
        "`vertex`: the project, the first that is set; else that of the credentials"
    ),
    "GOOGLE_CLOUD_LOCATION, CLOUD_ML_REGION": "`vertex`: the location, the first that is set; else `global`",
    "GCE_METADATA_HOST, K_SERVICE, CLOUD_RUN_JOB, GAE_ENV, KUBERNETES_SERVICE_HOST": (
        "`vertex`: set by Google Cloud: the machine may have credentials"
    ),
    "NO_GCE_CHECK": "`vertex`: `true`: the machine is not asked for credentials",
}

OF_SYSTEM = {
    "XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME": (
        "where settings, data, state and caches are kept, on every system ([files](files.md))"
    ),
    "HOME": "your home directory",
    "APPDATA, LOCALAPPDATA": "Windows: where settings and data are kept",
    "TMPDIR, TEMP, TMP": "where temporary files are made",
    "PATH, PATHEXT": "where programs are found; places that the agent can write are left out",
    "HTTP_PROXY, HTTPS_PROXY, NO_PROXY": (
        "the proxy for requests to providers, and the hosts without one; also in lower case"
    ),
    "NO_COLOR": "no colours",
    "TERM, COLORTERM, COLORFGBG": "what the terminal can show; `TERM=dumb`: the plain chat without colours",
    "TERM_PROGRAM, KITTY_WINDOW_ID, TMUX": "how the terminal is notified, and text copied",
    "EDITOR, VISUAL": "your editor, the first that is set; the setting `editor` wins, without any it is `vi`",
    "PAGER": "shows `swink docs` page by page",
    "SHELL": "the shell whose name the agent is told",
    "LC_ALL, LC_CTYPE, LANG": "the locale; one that is not UTF-8 makes rules about commands stricter",
    "DISPLAY, WAYLAND_DISPLAY, BROWSER": "whether a browser can be opened, and an image pasted",
    "CODEX_HOME": "the folder of Codex that `swink adopt codex` reads; else `~/.codex`",
    "GITHUB_ACTIONS, GITHUB_WORKSPACE": "on GitHub `swink eval` marks the lines of cases that failed",
    "OMP_WAIT_POLICY": "how threads of a local model wait; else `passive`",
    "PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, UV_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX": (
        "your Python package indexes, which a question about the network offers"
    ),
    "NPM_CONFIG_REGISTRY, npm_config_registry, GOPROXY": "the same for npm and Go",
    "CARGO_HOME, RUSTUP_HOME, GOPATH, GOBIN, NVM_DIR, PYENV_ROOT, PYTHONUSERBASE, ZDOTDIR": (
        "places in your home that commands in the sandbox may not write"
    ),
    "LD_LIBRARY_PATH, DYLD_LIBRARY_PATH": "kept for the process that starts commands",
    "SSH_AUTH_SOCK, SSH_AGENT_PID, GPG_AGENT_INFO, GPG_TTY, DBUS_SESSION_BUS_ADDRESS, XAUTHORITY": (
        "passed to commands that you let run outside the sandbox"
    ),
    "DOCKER_HOST, DOCKER_CONTEXT, KUBECONFIG": "the same",
}
