package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

//go:embed replay.html
var replayText string

// Sizes for a replay's pictures, in pixels.
const (
	lineWidth  = 720
	lineHeight = 160
)

// replayView is the input for the replay template.
type replayView struct {
	*replay.Result
	Duration, Step string
	Rows           []replay.Figure
	Lines          []lines
	Lists          []list
}

// lines is a picture of a figure over time: for the replay and for the recording.
type lines struct {
	Title, Highest, End string
	Width, Height       int
	Replayed, Recorded  string // points of an SVG polyline
	Marks               []eviction
}

// eviction is an eviction's time in a picture.
type eviction struct{ X, Label string }

// WriteReplay writes the page for a replay.
func WriteReplay(w io.Writer, r *replay.Result) error {
	t, err := template.New("replay").Funcs(template.FuncMap{"count": plural.Count}).Parse(headText + replayText)
	if err != nil {
		return fmt.Errorf("read template of the report: %w", err)
	}
	v := replayView{Result: r, Duration: replay.Elapsed(r.Seconds), Step: replay.Elapsed(r.StepSeconds), Rows: r.Figures(),
		Lists: replayLists(r)}
	for _, resource := range r.Replayed.Mean.Resources() {
		v.add("Utilization: "+resource, percent, 1, func(v replay.Values) float64 { return v.Utilization[resource] })
	}
	number := func(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }
	v.add("Waiting pods", number, 0, func(v replay.Values) float64 { return v.Waiting })
	v.add("Pods on nodes", number, 0, func(v replay.Values) float64 { return v.Running })
	v.add("Nodes", number, 0, func(v replay.Values) float64 { return v.Nodes })
	if r.Replayed.Mean.Cost > 0 {
		v.add("Cost of nodes", report.FormatPrice, 0, func(v replay.Values) float64 { return v.Cost })
		v.add("Cost of empty nodes", report.FormatPrice, 0, func(v replay.Values) float64 { return v.EmptyCost })
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// add adds a picture. most is the least value at the picture's top.
func (v *replayView) add(title string, format func(float64) string, most float64, of func(replay.Values) float64) {
	for _, points := range [][]replay.Point{v.Replayed.Points, v.Recorded.Points} {
		for _, p := range points {
			most = max(most, of(p.Values))
		}
	}
	draw := func(points []replay.Point) string { return polyline(points, v.Seconds, most, of) }
	l := lines{Title: title, Highest: format(most), End: v.Duration, Width: lineWidth, Height: lineHeight,
		Replayed: draw(v.Replayed.Points), Recorded: draw(v.Recorded.Points)}
	if title == "Waiting pods" {
		for i := range min(len(v.Evicted), mostRows) {
			e := &v.Evicted[i]
			l.Marks = append(l.Marks, eviction{X: fmt.Sprintf("%.1f", lineWidth*part(e.Seconds, 0, v.Seconds)),
				Label: e.Namespace + "/" + e.Name + " evicted"})
		}
	}
	v.Lines = append(v.Lines, l)
}

func polyline(points []replay.Point, seconds, most float64, of func(replay.Values) float64) string {
	var text strings.Builder
	for _, p := range points {
		height := 1.0
		if most > 0 {
			height = 1 - of(p.Values)/most
		}
		fmt.Fprintf(&text, "%.1f,%.1f ", lineWidth*part(p.Seconds, 0, seconds), lineHeight*height)
	}
	return strings.TrimSuffix(text.String(), " ")
}

func replayLists(r *replay.Result) []list {
	evicted := list{ID: "evicted", Title: "Evicted pods", Columns: []string{"Pod", "Node", "For", "At"}}
	for i := range r.Evicted {
		e := &r.Evicted[i]
		evicted.add(e.Namespace+"/"+e.Name, e.Node, e.By, replay.Elapsed(e.Seconds))
	}
	lost := list{ID: "lost", Title: "Pods of removed nodes", Columns: []string{"Pod", "Node", "At"}}
	for i := range r.Lost {
		e := &r.Lost[i]
		lost.add(e.Namespace+"/"+e.Name, e.Node, replay.Elapsed(e.Seconds))
	}
	unplaced := list{ID: "unplaced", Title: "Pods that wait in the end", Columns: []string{"Pod", "Since", "Reason"}}
	for _, u := range r.Unplaced {
		unplaced.add(u.Namespace+"/"+u.Name, replay.Elapsed(u.Since), u.Reason)
	}
	others := list{ID: "differences", Title: "Pods on other nodes than in the recording",
		Columns: []string{"Pod", "Recorded", "Replay"}}
	for _, d := range r.Differences {
		others.add(d.Namespace+"/"+d.Name, d.Recorded, d.Node)
	}
	var all []list
	for _, l := range []list{evicted, lost, unplaced, others} {
		if l.Total() > 0 {
			all = append(all, l)
		}
	}
	return all
}
