package main

import (
	"bytes"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestUpgradeTable(t *testing.T) {
	report := &replace.UpgradeReport{
		Release: "v1.25.4",
		Schedulers: []lifecycle.Upgrade{
			{Name: "current", Namespace: "kube-system", Release: "v1.25.4", Target: "v1.25.4", Image: "localhost/s:v1.25.4"},
			{
				Name: "behind", Namespace: "kube-system", Release: "v1.24.3", Target: "v1.25.4", Due: true,
				Image: "localhost/s:v1.24.3", NewImage: "localhost/s:v1.25.4",
				Build: true, Plugins: []string{"Timestamp", "BlockAll"}, From: "kubescheduler.config.k8s.io/v1beta3",
				To:      "kubescheduler.config.k8s.io/v1",
				Changes: []string{"line 1: apiVersion", "line 4: a field"}, Warnings: []string{"a loss"},
				KnownProblems: []string{"it can crash (kubernetes#1; fixed in v1.25.9)"},
				Command:       "pmk-sched upgrade --name behind",
			},
			{
				Name: "blocked", Namespace: "other", Release: "v1.24.3", Target: "v1.25.4", Due: true, Image: "localhost/s:v1.24.3",
				Blocked: "first line\nsecond line", Needs: []string{"name its file with -f"},
			},
		},
		Nodes: []replace.NodeUpgrade{
			{Node: "cp-1", Image: "localhost/s:v1.25.4", Release: "v1.25.4", Replaced: true},
			{Node: "cp-2", Image: "registry.k8s.io/kube-scheduler:v1.25.4", Due: true, Drift: []string{
				"the manifest: rewritten"}, Needs: "replace it again"},
		},
	}
	var out bytes.Buffer
	u := newUI(nil, &out, &out)
	if err := u.Data("table", report, upgradeTable(report)); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/upgrade.golden", out.Bytes())
}
