// Package chart draws the pictures of the documentation from the results of benchmarks.
package chart

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Line is a series of points, from left to right.
type Line struct {
	Name   string
	Points []Point
	// Low and High are the least and the greatest value at each point, the band around the line.
	// Without them it has no band.
	Low, High []float64
}

// Point is a point in the units of the axes.
type Point struct{ X, Y float64 }

// Axis is the title and the range of an axis, with a label at each step.
type Axis struct {
	Title           string
	From, To, Every float64
}

// Sizes in pixels: of the plot, and of its margins.
const (
	width, height            = 560.0, 280.0
	left, right, top, bottom = 56.0, 150.0, 36.0, 48.0
)

// styles returns the color and the dashes of each line. The colors differ for red-green color-blind
// readers too (the palette of Okabe and Ito).
func styles() [][2]string {
	return [][2]string{{"#0072b2", ""}, {"#d55e00", "8 3"}, {"#009e73", "2 3"}, {"#cc79a7", "10 3 2 3"},
		{"#000000", "4 2"}, {"#e69f00", "1 2"}}
}

// Write writes a picture to docs/images. It is an SVG on white, so that it can be read in light and
// dark pages.
func Write(tb testing.TB, name, title string, x, y Axis, lines ...Line) {
	tb.Helper()
	path := filepath.Join(run.Root(), "docs", "images", name)
	if err := os.WriteFile(path, []byte(draw(title, x, y, lines)), 0o644); err != nil { //nolint:gosec // documentation
		tb.Fatal(err)
	}
}

func draw(title string, x, y Axis, lines []Line) string {
	var s strings.Builder
	fmt.Fprintf(&s,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12" fill="#222">`+"\n", left+width+right, top+height+bottom)
	fmt.Fprintf(&s, `<title>%s</title><rect width="100%%" height="100%%" fill="#fff"/>`+"\n", html.EscapeString(title))
	text := func(x, y float64, anchor, text string) {
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
	}
	rule := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&s, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#ccc"/>`+"\n", x1, y1, x2, y2)
	}
	atX := func(v float64) float64 { return left + width*(v-x.From)/(x.To-x.From) }
	atY := func(v float64) float64 { return top + height*(y.To-v)/(y.To-y.From) }
	for v := x.From; v <= x.To; v += x.Every {
		rule(atX(v), top, atX(v), top+height)
		text(atX(v), top+height+18, "middle", fmt.Sprintf("%g", v))
	}
	for v := y.From; v <= y.To; v += y.Every {
		rule(left, atY(v), left+width, atY(v))
		text(left-8, atY(v)+4, "end", fmt.Sprintf("%g", v))
	}
	text(left+width/2, top+height+38, "middle", x.Title)
	text(8, top-14, "start", y.Title)
	for i, line := range lines {
		style := styles()[i%len(styles())]
		at := func(x, y float64) string { return fmt.Sprintf("%.1f,%.1f", atX(x), atY(y)) }
		var points, high, low []string
		for j, p := range line.Points {
			points = append(points, at(p.X, p.Y))
			if len(line.Low) > 0 {
				high, low = append(high, at(p.X, line.High[j])), append(low, at(p.X, line.Low[j]))
			}
		}
		if slices.Reverse(low); len(low) > 0 {
			fmt.Fprintf(&s, `<polygon points="%s" fill="%s" fill-opacity="0.2"/>`+"\n",
				strings.Join(append(high, low...), " "), style[0])
		}
		look := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"`, style[0], style[1])
		fmt.Fprintf(&s, `<polyline points="%s" %s/>`+"\n", strings.Join(points, " "), look)
		legend := top + 12 + 20*float64(i)
		fmt.Fprintf(&s, `<path d="M%.1f %.1fh24" %s/>`+"\n", left+width+12, legend, look)
		text(left+width+42, legend+4, "start", line.Name)
	}
	return s.String() + "</svg>\n"
}
