"""Hooks of mkdocs.yml. Links that leave the folder docs lead to the repository on GitHub, and no page loads anything
from another host."""

import posixpath
import re
from pathlib import Path

# Matches a Markdown link that goes up from its folder.
_UPWARDS = re.compile(r"\]\((\.\./[^)\s]*)\)")

# Matches what a browser loads by itself, in contrast to links that a reader follows.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?![^>]*\brel=[\"']?(?:canonical|alternate|prev|next|edit))[^>]*\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|@import\s+(?:url\()?[\"']?((?:https?:)?//[^\"'\s>)]+)|\burl\([\"']?((?:https?:)?//[^\"')]+)",
    re.IGNORECASE,
)


def on_page_markdown(markdown, page, config, files):
    """Leads links to files outside docs, such as README and the sources, to the repository on GitHub."""
    root, docs = Path(config["config_file_path"]).parent, Path(config["docs_dir"]).name
    folder = posixpath.dirname(posixpath.join(docs, page.file.src_uri))

    def outside(match):
        path, hash_, anchor = match[1].partition("#")
        target = posixpath.normpath(posixpath.join(folder, path))
        if target.startswith(docs + "/") or not (root / target).exists():
            return match[0]  # leads to a page of docs, or MkDocs will report it as broken
        kind = "tree" if (root / target).is_dir() else "blob"
        return f"]({config['repo_url'].rstrip('/')}/{kind}/main/{target}{hash_}{anchor})"

    return _UPWARDS.sub(outside, markdown)


def on_post_page(output, page, config):
    """Removes the script that would ask GitHub for the repository's stars at each visit. The link to the repository
    stays."""
    return output.replace('data-md-component="source"', "")


def on_post_build(config):
    """Fails if a page or a style sheet would load something from another host."""
    foreign = []
    for path in sorted(Path(config["site_dir"]).rglob("*")):
        if path.suffix in (".html", ".css"):
            for match in _LOADED.finditer(path.read_text(encoding="utf-8")):
                foreign.append(f"{path.relative_to(config['site_dir'])}: {next(filter(None, match.groups()))}")
    if foreign:
        raise SystemExit("the site would load from other hosts:\n" + "\n".join(foreign))
