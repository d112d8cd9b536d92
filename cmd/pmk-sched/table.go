package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	// textWidth is the width of printed text, in columns.
	textWidth = 100
	// mostRows limits the entries from a long list in a table. The other formats have all.
	mostRows = 20
	// mostBest limits the best nodes, or the slowest plugins, in a table.
	mostBest = 10
	// shortDigest is a digest's length in a table: the algorithm and 12 digits.
	shortDigest = len("sha256:") + 12
)

// printer builds a command's text in the format table. A row has cells, separated by tabs. Columns
// end at a line without tabs.
type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// row writes cells; a bool is yes or no.
func (p *printer) row(cells ...any) {
	for i, cell := range cells {
		switch yes, is := cell.(bool); {
		case is && yes:
			cell = "yes"
		case is:
			cell = "no"
		}
		if i > 0 {
			p.WriteByte('\t')
		}
		fmt.Fprint(p, cell)
	}
	p.WriteByte('\n')
}

// pairs writes a row for each name and the value after it.
func (p *printer) pairs(namesAndValues ...any) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		p.row(pair...)
	}
}

// facts is [printer.pairs] without empty values.
func (p *printer) facts(namesAndValues ...string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			p.row(pair[0], pair[1])
		}
	}
}

// head writes an empty line and the column names, unless the list below them is empty.
func (p *printer) head(entries int, columns ...any) {
	if entries > 0 {
		p.row()
		p.row(columns...)
	}
}

// first returns the entries in a list that its table has.
func first[T any](list []T) []T { return list[:min(mostRows, len(list))] }

// more writes how many of n entries the table does not have.
func (p *printer) more(n int) {
	if n > mostRows {
		p.line("… %d more, see -o json", n-mostRows)
	}
}

// aligned returns a text with its columns aligned.
func aligned(text string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte(text)) // writing to memory does not fail
	_ = w.Flush()
	return b.String()
}

// paragraph is a named fact, indented.
func paragraph(name, text string) string {
	return wrapText(text, fmt.Sprintf("  %-13s", name), strings.Repeat(" ", 15))
}

// wrapText breaks a text into lines of at most [textWidth] columns; it does not break words.
func wrapText(text, first, next string) string {
	return first + strings.Join(wrap(text, textWidth-len(next)), "\n"+next) + "\n"
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
