#!/usr/bin/env bash
# Brings what is compiled in but not ours: Playwright's trace viewer, from its
# npm package into shared/viewer/assets. Does nothing when it is there already.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_node
folder=shared/viewer
version=$(node -p 'require("./shared/viewer/package.json").dependencies["playwright-core"]')
if [ "$(cat $folder/assets/VERSION.txt 2>/dev/null || true)" = "$version" ]; then exit 0; fi

scripts/prerequisites.sh npm $folder
package=$folder/node_modules/playwright-core
fresh=$(mktemp -d $folder/assets.XXXXXX)
trap 'rm -rf "$fresh"' EXIT
cp -R $package/lib/vite/traceViewer/. "$fresh"
# Pages for running tests: they would only be more to attack.
rm -f "$fresh"/uiMode.* "$fresh"/assets/xtermModule-* "$fresh"/xtermModule.*
for notice in LICENSE NOTICE ThirdPartyNotices.txt; do cp $package/$notice "$fresh/${notice%.txt}.txt"; done
# Last: with it the folder is complete.
find $folder/assets -mindepth 1 ! -name .gitignore -delete
cp -R "$fresh"/. $folder/assets
printf '%s\n' "$version" >$folder/assets/VERSION.txt
say "Playwright's trace viewer $version is in $folder/assets; the next build includes it."
