package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

const (
	// textWidth is the width of printed text, in columns.
	textWidth = 100
	// tableWidth is the width of a table whose cells are shortened.
	tableWidth = 80
	// narrowest is the width below which no column is shortened.
	narrowest = 8
	// mostRows limits the entries from a long list in a table. The other formats have all.
	mostRows = 20
	// mostBest limits the best nodes, or the slowest plugins, in a table.
	mostBest = 10
	// shortDigest is a digest's length in a table: the algorithm and 12 digits.
	shortDigest = len("sha256:") + 12
)

// printer is a [command.Printer] with methods for the results of commands.
type printer struct{ command.Printer }

// first returns the entries in a list that its table has.
func first[T any](list []T) []T { return list[:min(mostRows, len(list))] }

// fitted writes rows that fit a terminal: while they are wider than [tableWidth], the widest of the
// columns is shortened, with an ellipsis.
func (p *printer) fitted(rows [][]string, columns ...int) {
	widths, total := make([]int, len(rows[0])), 2*(len(rows[0])-1)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
	}
	for ; total > tableWidth; total-- {
		widest := slices.MaxFunc(columns, func(a, b int) int { return widths[a] - widths[b] })
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			if text := []rune(cell); len(text) > widths[i] {
				cell = string(text[:widths[i]-1]) + "…"
			}
			cells[i] = cell
		}
		p.Row(cells...)
	}
}

// more writes how many of n entries the table does not have.
func (p *printer) more(n int) {
	if n > mostRows {
		p.Line("… %d more, see -o json", n-mostRows)
	}
}

// paragraph is a named fact, indented.
func paragraph(name, text string) string {
	return wrapText(text, fmt.Sprintf("  %-13s", name), strings.Repeat(" ", 15))
}

// wrapText breaks a text into lines of at most [textWidth] columns; it does not break words.
func wrapText(text, first, next string) string {
	return first + strings.Join(command.Wrap(text, textWidth-len(next)), "\n"+next) + "\n"
}

// oneLine replaces line breaks and repeated spaces, which would break a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func shortReference(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	return name + prefixed("@", digest[:min(len(digest), shortDigest)])
}

func joinNonEmpty(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// joined joins the texts for the entries in a list.
func joined[T any](list []T, separator string, text func(T) string) string {
	var texts []string
	for _, entry := range list {
		texts = append(texts, text(entry))
	}
	return strings.Join(texts, separator)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func orDash(text string) string { return cmp.Or(text, "-") }

// instant is a time in UTC; "-" if it is not set.
func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// seconds is a duration in milliseconds or, above a second, in seconds.
func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", s*1000)
	}
	return fmt.Sprintf("%.1f s", s)
}

func names(list []string) string { return orDash(strings.Join(list, ", ")) }

// codesOf are the codes of the findings about a scheduler or extender, each once.
func codesOf(w *health.Workload, findings []health.Finding) string {
	var codes []string
	for _, f := range findings {
		if f.Kind == w.Kind && f.Name == w.Name && f.Namespace == w.Namespace && !slices.Contains(codes, string(f.Code)) {
			codes = append(codes, string(f.Code))
		}
	}
	if len(codes) > 2 {
		codes = append(codes[:2], fmt.Sprintf("%d more", len(codes)-2))
	}
	if len(codes) == 0 {
		return "none"
	}
	return strings.Join(codes, ", ")
}
