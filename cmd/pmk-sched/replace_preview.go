package main

import (
	"fmt"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// replacePreview is the output from replace --dry-run.
type replacePreview struct {
	Node  string `json:"node"`
	Image string `json:"image"`
	// Diff shows how the static pod's manifest would change.
	Diff string `json:"diff"`
}

func newPreview(plan *replace.Plan) *replacePreview {
	changes := diff.Diff("live"+plan.Layout.Manifest, plan.Old.Data, "wanted"+plan.Layout.Manifest, plan.New.Data)
	return &replacePreview{Node: plan.Node, Image: plan.Image, Diff: string(changes)}
}

func replacedTable(o *replace.Outcome) string {
	var p printer
	p.Pairs("node", o.Node, "image", o.Image, "backup", o.Backup, "leader", o.Leads,
		"without a scheduler", fmt.Sprintf("%.1f s", o.SecondsWithout))
	return p.String()
}
