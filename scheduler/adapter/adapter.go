// Package adapter says how a portable plugin is bound to the scheduling framework of a release:
// which of the adapters beside it fits, which of its files, and which pieces a plugin is made of.
// It is data for whoever generates a scheduler; it imports nothing.
//
// There is one adapter per era, the minors that share the framework's main interfaces:
//
//	b  1.20–1.28   New without context, scores by node name
//	c  1.29–1.32   New with context
//	d  1.33        scores by NodeInfo
//	e  1.34        NodeInfo, CycleState and Status are in k8s.io/kube-scheduler/framework
//	f  1.35–1.37   so is everything else
//
// Where minors of one era differ, the adapter has one file for each form. The name says which minors it
// is for: x_from24.go is for 1.24 and later, x_before24.go for those before it, x_from24_before30.go for
// 1.24 to 1.29. Files that do not compile against the release of this module's go.mod begin with
// `//go:build pmksched`, followed by an empty line. Whoever compiles them for another release takes the files that
// Files returns, from the folders that Folders names, and drops that line.
//
// An adapter has a struct for each extension point, named as the point with the suffix Point. A plugin
// becomes a struct that embeds Base and the points that Compose names, and no more, since the
// framework takes every interface that a plugin has for one it wants to be called by:
//
//	type loadAware struct {
//		adapter.Base
//		adapter.FilterPoint
//		adapter.ScorePoint
//	}
//
//	func newLoadAware(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
//		p, err := loadaware.New(ctx, host.Arguments, host)
//		if err != nil {
//			return nil, err
//		}
//		return &loadAware{
//			Base:        host.Base(p),
//			FilterPoint: adapter.FilterPoint{Host: host, Plugin: p},
//			ScorePoint:  adapter.ScorePoint{Host: host, Plugin: p},
//		}, nil
//	}
//
//	app.WithPlugin(loadaware.Name, adapter.Factory(loadaware.Name, newLoadAware))
//
// This text is the same for every era; only the path of the import named adapter differs. Factory compares the
// struct with the plugin's methods when the scheduler starts and refuses if one was left out.
package adapter

import (
	"fmt"
	"strconv"
	"strings"
)

// The minors of Kubernetes 1 that there are adapters for.
const (
	OldestMinor = 20
	NewestMinor = 37
)

// Era returns the folder of the adapter for a minor of Kubernetes 1: b, c, d, e or f.
func Era(minor int) (string, error) {
	switch {
	case minor < OldestMinor || minor > NewestMinor:
		return "", fmt.Errorf("portable plugins are for Kubernetes 1.%d to 1.%d, not 1.%d", OldestMinor, NewestMinor, minor)
	case minor < 29:
		return "b", nil
	case minor < 33:
		return "c", nil
	case minor < 34:
		return "d", nil
	case minor < 35:
		return "e", nil
	}
	return "f", nil
}

// Folders returns the folders of this module that a scheduler with portable plugins is compiled
// from for a minor, beside those of the plugins. All have files for other minors: see Files.
func Folders(minor int) ([]string, error) {
	era, err := Era(minor)
	if err != nil {
		return nil, err
	}
	return []string{"scheduler", "scheduler/adapter", "scheduler/adapter/host", "scheduler/adapter/" + era}, nil
}

// Files returns those of a folder's files that are for a minor, without tests.
func Files(minor int, names []string) []string {
	var chosen []string
	for _, name := range names {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && fits(minor, strings.TrimSuffix(name, ".go")) {
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// fits reads the suffixes of a file name.
func fits(minor int, name string) bool {
	for _, part := range strings.Split(name, "_")[1:] {
		if from, err := strconv.Atoi(strings.TrimPrefix(part, "from")); err == nil && strings.HasPrefix(part, "from") && minor < from {
			return false
		}
		if before, err := strconv.Atoi(strings.TrimPrefix(part, "before")); err == nil && strings.HasPrefix(part, "before") && minor >= before {
			return false
		}
	}
	return true
}
