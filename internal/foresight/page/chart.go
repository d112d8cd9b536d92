package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Chart sizes, in pixels.
const (
	barWidth    = 400
	rowHeight   = 14
	barHeight   = 12
	cellSize    = 12
	cellColumns = 40
	curveWidth  = 400
	curveHeight = 120
	curvePoints = 400
)

// chart shows one resource on all nodes before and after.
type chart struct {
	Index          int // of the resource
	Resource       string
	Maximum        int64 // of the scale of the bars
	Width, Height  int
	Left           int   // width of the labels
	Rows           []row // labels
	Sides          [2]side
	CurveW, CurveH int
	Curve          [2]string // points
}

// row is a node.
type row struct {
	Node, Label string
	Y           int
}

// side is the state before or after.
type side struct {
	Title string
	Bars  []bar
	Cells []cell
}

// bar is a node's bar: its allocatable and requested amounts, and the borders between its pods.
type bar struct {
	Y               int
	Has, Used       string // widths
	Borders, Figure string
	Over            bool
}

// cell is a node in a heat map: its level is from 0 to 10.
type cell struct {
	X, Y, Node, Level int
}

// newChart returns the chart for a resource.
func newChart(d data, index int, before, after *report.Usage, large bool) chart {
	c := chart{Index: index, Resource: d.Resources[index], CurveW: curveWidth, CurveH: curveHeight}
	states := [2]map[string]*report.Node{nodesByName(before), nodesByName(after)}
	for _, state := range states {
		for _, n := range state {
			c.Maximum = max(c.Maximum, n.Allocatable[c.Resource], n.Requested[c.Resource])
		}
	}
	for i, title := range []string{"before", "after"} {
		c.Sides[i].Title = title
		c.Curve[i] = curve(states[i], c.Resource)
	}
	if large {
		c.Width, c.Height = cellSize*cellColumns, cellSize*((len(d.Nodes)+cellColumns-1)/cellColumns)
		for i := range c.Sides {
			c.Sides[i].Cells = cells(d.Nodes, states[i], c.Resource)
		}
		return c
	}
	c.Width, c.Height = barWidth, rowHeight*len(d.Nodes)
	domain := commonDomain(d.Nodes)
	for i, name := range d.Nodes {
		r := row{Node: name, Label: shorten(name, domain), Y: i * rowHeight}
		c.Rows = append(c.Rows, r)
		c.Left = max(c.Left, labelMargin+letterWidth*len([]rune(r.Label)))
	}
	for i := range c.Sides {
		c.Sides[i].Bars = c.bars(d.Nodes, states[i])
	}
	return c
}

// Total returns the bars' width with their labels and the line around them.
func (c chart) Total() int { return c.Left + c.Width + 2 }

const (
	// labelLength is a label's maximum length in letters.
	labelLength = 24
	// letterWidth is the mean letter width in a wide font, labelMargin the space left and right of a
	// label.
	letterWidth = 6
	labelMargin = 10
)

// commonDomain returns the domain in all names, which begins after their first period. It returns
// "" if their domains differ.
func commonDomain(names []string) string {
	common := ""
	for i, name := range names {
		_, domain, _ := strings.Cut(name, ".")
		if i > 0 && domain != common {
			return ""
		}
		common = domain
	}
	return common
}

// shorten returns a label for a node, without the domain that all nodes have.
func shorten(name, domain string) string {
	name = strings.TrimSuffix(name, "."+domain)
	letters := []rune(name)
	if len(letters) <= labelLength {
		return name
	}
	return string(letters[:labelLength-1]) + "…"
}

func nodesByName(u *report.Usage) map[string]*report.Node {
	all := map[string]*report.Node{}
	for _, n := range u.List() {
		all[n.Name] = n
	}
	return all
}

// bars returns the bars for the nodes that a state has.
func (c *chart) bars(names []string, nodes map[string]*report.Node) []bar {
	var all []bar
	for i, name := range names {
		n := nodes[name]
		if n == nil {
			continue
		}
		has, used := n.Allocatable[c.Resource], n.Requested[c.Resource]
		b := bar{
			Y: i * rowHeight, Has: c.width(has), Used: c.width(used), Over: used > has,
			Figure: fmt.Sprintf("%s of %s", report.Amount(c.Resource, used), report.Amount(c.Resource, has)),
		}
		var borders strings.Builder
		sum := int64(0)
		for _, p := range n.Pods {
			if request := p.Requests[c.Resource]; request > 0 {
				sum += request
				fmt.Fprintf(&borders, "M%s %dv%d", c.width(sum), b.Y, barHeight)
			}
		}
		b.Borders = borders.String()
		all = append(all, b)
	}
	return all
}

// width returns an amount's width.
func (c *chart) width(amount int64) string {
	if c.Maximum == 0 {
		return "0"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", barWidth*float64(amount)/float64(c.Maximum)), ".0")
}

// cells returns the cells for the nodes that have the resource.
func cells(names []string, nodes map[string]*report.Node, resource string) []cell {
	var all []cell
	for i, name := range names {
		n := nodes[name]
		if n == nil || n.Allocatable[resource] == 0 {
			continue
		}
		level := int(math.Floor(10 * n.Utilization(resource)))
		all = append(all, cell{X: cellSize * (i % cellColumns), Y: cellSize * (i / cellColumns), Node: i,
			Level: min(max(level, 0), 10)})
	}
	return all
}

// curve returns the points of node utilization in ascending order. If there are many nodes, some
// are left out.
func curve(nodes map[string]*report.Node, resource string) string {
	var parts []float64
	for _, n := range nodes {
		if n.Allocatable[resource] > 0 {
			parts = append(parts, min(n.Utilization(resource), 1))
		}
	}
	slices.Sort(parts)
	var points strings.Builder
	count := min(len(parts), curvePoints)
	for i := range count {
		at := 0
		if count > 1 {
			at = i * (len(parts) - 1) / (count - 1)
		}
		x := curveWidth * float64(at) / float64(max(len(parts)-1, 1))
		fmt.Fprintf(&points, "%.1f,%.1f ", x, curveHeight*(1-parts[at]))
	}
	return strings.TrimSuffix(points.String(), " ")
}
