#!/usr/bin/env bash
# Lists lines that are too long: hack/width.sh [FILE...], by default every file that git knows.
# Exit status: 0 no line is too long; 1 the listed lines are.
#
#   Go:        code at most 120 columns; a comment on a line of its own at most 100
#   Markdown:  prose at most 100 columns
#
# A column is what `awk length` counts in the locale C: a byte, and a tab is 1 column.
#
# Exceptions:
#   - a line that cannot be broken: string literals with at most 80 columns of code around them, a
#     URL, one word, a directive such as //go:build; //nolint and its reason do not count
#   - preformatted text in comments, which begins with a tab
#   - lines within a raw string literal
#   - tables and code blocks of Markdown
#   - generated files, testdata and goldens
set -euo pipefail
cd "$(dirname "$0")/.."

list() {
	if [ $# -gt 0 ]; then
		printf '%s\n' "$@"
	else
		git ls-files -co --exclude-standard '*.go' '*.md'
	fi | grep -vE '(^|/)testdata/|\.golden$' | sort
}

too_long() {
	LC_ALL=C awk '
	function report(most) {
		printf "%s:%d: %d columns, at most %d\n", FILENAME, FNR, length($0), most
		found = 1
	}

	# scan sets raw: whether the line ends within a raw string literal.
	function scan(line,   i, c, quote) {
		for (i = 1; i <= length(line); i++) {
			c = substr(line, i, 1)
			if (raw) { if (c == "`") raw = 0 }
			else if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = "" }
			else if (c == "\"" || c == "\x27") quote = c
			else if (c == "`") raw = 1
			else if (substr(line, i, 2) == "//") return
		}
	}

	FNR == 1 { generated = 0; markdown = FILENAME ~ /\.md$/; raw = 0; block = 0 }
	FNR <= 3 && /^(\/\/ Code generated .* DO NOT EDIT\.|Generated from )/ { generated = 1 }
	generated { next }

	markdown && /^[ \t]*```/ { block = !block; next }
	markdown {
		if (length($0) > 100 && !block && $0 !~ /^[ \t]*\|/ && $0 !~ /^[ \t]*([-*] |[0-9]+\. )?[^ ]+$/)
			report(100)
		next
	}

	{ inside = raw }
	/`/ { scan($0) }
	length($0) <= 100 || inside { next }
	/^[ \t]*\/\// {
		if ($0 !~ /^[ \t]*\/\/\t/ && $0 !~ /^[ \t]*\/\/[a-z]+:/ && $0 !~ /^[ \t]*\/\/ *[^ ]+$/ && $0 !~ /^[ \t]*\/\/.*:\/\/[^ ]+$/)
			report(100)
		next
	}
	length($0) > 120 {
		code = $0
		sub(/ \/\/nolint:.*/, "", code)
		if (length(code) <= 120) next
		gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
		gsub(/`[^`]*`?/, "``", code)
		gsub(/  +/, " ", code) # alignment
		if (length(code) > 80) report(120)
	}

	END { exit found }' "$@"
}

mapfile -t files < <(list "$@")
[ ${#files[@]} -eq 0 ] || too_long "${files[@]}"
