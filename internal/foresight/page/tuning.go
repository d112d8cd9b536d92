package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
)

//go:embed tuning.html
var tuningText string

// headText is the template for the head in search and replay pages.
//
//go:embed head.html
var headText string

// Sizes for a search's pictures, in pixels.
const (
	plotWidth  = 420
	plotHeight = 260
)

// tuningView is the input for the search template.
type tuningView struct {
	*tune.Result
	Plots []plot
}

// plot shows two objectives for all trials.
type plot struct {
	X, Y                   string
	Width, Height          int
	Left, Right, Low, High string
	Marks                  []mark
}

// mark is a trial: on the front, given, or another one.
type mark struct {
	X, Y, Label, Class string
	Radius             int
}

// WriteTuning writes the page for a search.
func WriteTuning(w io.Writer, r *tune.Result) error {
	functions := template.FuncMap{"count": plural.Count, "figure": tune.Format, "inc": func(i int) int { return i + 1 }}
	t, err := template.New("tuning").Funcs(functions).Parse(headText + tuningText)
	if err != nil {
		return fmt.Errorf("read template of the report: %w", err)
	}
	v := tuningView{Result: r}
	for y := 1; y < len(r.Objectives); y++ {
		for x := range y {
			v.Plots = append(v.Plots, newPlot(r, x, y))
		}
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// newPlot returns the picture for two objectives, by their indexes. The front's points are drawn
// last.
func newPlot(r *tune.Result, x, y int) plot {
	p := plot{X: axis(r.Objectives[x]), Y: axis(r.Objectives[y]), Width: plotWidth, Height: plotHeight}
	left, right, low, high := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, t := range r.Trials {
		if t.Figures != nil {
			left, right = min(left, t.Figures[x]), max(right, t.Figures[x])
			low, high = min(low, t.Figures[y]), max(high, t.Figures[y])
		}
	}
	p.Left, p.Right, p.Low, p.High = tune.Format(left), tune.Format(right), tune.Format(low), tune.Format(high)
	add := func(f tune.Figures, label, class string, radius int) {
		p.Marks = append(p.Marks, mark{
			X: fmt.Sprintf("%.1f", plotWidth*part(f[x], left, right)), Radius: radius, Class: class,
			Y:     fmt.Sprintf("%.1f", plotHeight*(1-part(f[y], low, high))),
			Label: fmt.Sprintf("%s: %s, %s", label, tune.Format(f[x]), tune.Format(f[y])),
		})
	}
	for _, t := range r.Trials {
		if t.Figures != nil {
			add(t.Figures, t.Name, "other", 3)
		}
	}
	for _, given := range []bool{true, false} {
		for i := range r.Points {
			if point := &r.Points[i]; point.Front != given {
				class := "given"
				if point.Front {
					class = "front"
				}
				add(point.Figures, point.Name, class, 5)
			}
		}
	}
	for i := range r.Points {
		if point := &r.Points[i]; point.Name == tune.Today {
			add(point.Figures, point.Name, "today", 7)
		}
	}
	return p
}

func axis(o tune.Objective) string {
	if o.Higher {
		return o.Name + " (more is better)"
	}
	return o.Name + " (less is better)"
}

// part returns where a value is between two others, 0.5 if they are equal.
func part(value, low, high float64) float64 {
	if high <= low {
		return 0.5
	}
	return (value - low) / (high - low)
}
