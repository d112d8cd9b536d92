#!/usr/bin/env bash
# Checks the wording of comments in product code and in tools: hack/prose.sh
#
# Prints, for each room, its words, "of" in 100 words, and the blocks that define a name with "is how",
# "is whether", "is where" or "is why". Exit status: 0 within the limits; 1 beyond them.
#
# Comments in Kubernetes, kind and Kueue have 1.1 to 1.6 "of" in 100 words, and at most 0.2 % such
# blocks.
set -euo pipefail
cd "$(dirname "$0")/.."
most_of=${MOST_OF:-2.0} most_how=${MOST_HOW:-0.5}

git ls-files '*.go' | grep -v -e '_test\.go$' -e '^test/' -e '/testdata/' | xargs awk -v most_of="$most_of" -v most_how="$most_how" '
	function room(file,   part) {
		split(file, part, "/")
		return part[1] == "internal" ? part[1] "/" part[2] : part[1]
	}
	function flush() {
		if (block != "") blocks[in_room]++
		if (block ~ /[^a-z](is|are) (how|whether|where|why)([^a-z]|$)/) how[in_room]++
		block = ""
	}
	function row(name, words, of, how, blocks) {
		printf "%-22s %7d words %6.2f of %6.2f %% is how\n", name, words, 100 * of / words, 100 * how / blocks
	}
	FNR == 1 { flush(); in_room = room(FILENAME) }
	/^[ \t]*\/\/ / {
		line = $0
		sub(/^[ \t]*\/\//, "", line)
		block = block line
		n = split(tolower(line), word, /[^a-z0-9]+/)
		for (i = 1; i <= n; i++) if (word[i] != "") { words[in_room]++; of[in_room] += word[i] == "of" }
		next
	}
	{ flush() }
	END {
		flush()
		for (r in words) {
			row(r, words[r], of[r], how[r], blocks[r])
			w += words[r]; o += of[r]; h += how[r]; b += blocks[r]
		}
		row("~ all", w, o, h, b)
		exit 100 * o / w > most_of || 100 * h / b > most_how
	}' | sort
