package deploy

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

func TestOwnImageIsThatOfTheDefaultSchedulerElseThePublishedOne(t *testing.T) {
	of := func(images ...string) *inspect.Info {
		info := masterInfo("v1.24.3")
		info.Scheduler.Pods = nil
		for _, image := range images {
			info.Scheduler.Pods = append(info.Scheduler.Pods, inspect.SchedulerPod{Image: image})
		}
		return info
	}
	replaced := of("registry.example.com/mine:v1.24.3")
	replaced.Scheduler.Pods[0].Replaced = true
	const here, published = "mirror.example.com/kube-scheduler:v1.24.3", "registry.example.com/kube-scheduler:v1.24.3"
	for name, tt := range map[string]struct {
		info   *inspect.Info
		branch string
		want   string
	}{
		"default scheduler":          {info: of(here, here), want: here},
		"managed":                    {info: of(), want: published},
		"without a cluster":          {branch: "v1.24.3", want: published},
		"replaced default scheduler": {info: replaced, want: published},
		"another release asked for":  {info: of(here), branch: "v1.24.9", want: "registry.example.com/kube-scheduler:v1.24.9"},
		"upgrade of nodes":           {info: of("mirror.example.com/kube-scheduler:v1.23.17", here), want: published},
		"images differ":              {info: of(here, "other.example.com/kube-scheduler:v1.24.3"), want: published},
		"by digest only": {info: of("mirror.example.com/kube-scheduler@sha256:" + strings.Repeat("0", 64)),
			want: published},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Cluster: tt.info, Branch: tt.branch}
			release, err := facts.Release()
			if err != nil {
				t.Fatal(err)
			}
			got, why, err := facts.OwnImage(&v1alpha1.CustomScheduler{}, release,
				"registry.example.com/kube-scheduler:"+release.String())
			if err != nil || got != tt.want || !strings.Contains(why, got) {
				t.Errorf("got %q (%s), %v, want %q", got, why, err, tt.want)
			}
		})
	}
}

func TestOwnImageHasNoPlugins(t *testing.T) {
	for name, tt := range map[string]struct {
		source v1alpha1.Source
		file   string
		want   string
	}{
		"bundled": {v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "coscheduling"}}}, "",
			"--branch v1.24.3 --with builtin:coscheduling --tag REPOSITORY:TAG --push"},
		"module": {v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Module: "example.com/m@v1.0.0", Package: "pkg/p"}}}, "",
			"--with example.com/m@v1.0.0:pkg/p --tag"},
		"directory and import": {v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Path: "./mine"}},
			Imports: []string{"example.com/i"}}, "", "--with ./mine --import example.com/i --tag"},
		"file": {v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Path: "./mine"}}}, "mine.yaml",
			"--branch v1.24.3 -f mine.yaml --tag REPOSITORY:TAG --push"},
		"sources": {v1alpha1.Source{From: "git:/src"}, "mine.yaml", "-f mine.yaml --tag"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.CustomScheduler{Spec: v1alpha1.CustomSchedulerSpec{Source: tt.source}}
			if tt.file != "" {
				r.Annotations = map[string]string{v1alpha1.AnnotationFile: tt.file}
			}
			info := masterInfo("v1.24.3")
			_, _, err := Facts{Cluster: info}.OwnImage(r, info.Release, "registry.example.com/kube-scheduler:v1.24.3")
			if err == nil || !strings.Contains(hintOf(err), tt.want) {
				t.Errorf("error %v with hint %q, want %q", err, hintOf(err), tt.want)
			}
		})
	}
}
