package command

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Printer builds a command's text in the format table. A row has cells, separated by tabs. Columns
// end at a line without tabs.
type Printer struct{ strings.Builder }

// Line writes a line of text.
func (p *Printer) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Row writes cells; a bool is yes or no.
func (p *Printer) Row(cells ...any) {
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

// Pairs writes a row for each name and the value after it.
func (p *Printer) Pairs(namesAndValues ...any) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		p.Row(pair...)
	}
}

// Facts is [Printer.Pairs] without empty values.
func (p *Printer) Facts(namesAndValues ...string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			p.Row(pair[0], pair[1])
		}
	}
}

// Head writes an empty line and the column names, unless the list below them is empty.
func (p *Printer) Head(entries int, columns ...any) {
	if entries > 0 {
		p.Row()
		p.Row(columns...)
	}
}

// Aligned returns a text with its columns Aligned.
func Aligned(text string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte(text)) // writing to memory does not fail
	_ = w.Flush()
	return b.String()
}
