//go:build matrix

package matrix

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// gates sets each feature gate that the minor release added, changed or removed to the value that
// is not its default: the scheduler takes it if versions has the gate, and does not lock it.
func gates(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	now, before := s.Release.Gates(), versions.Release{Major: 1, Minor: s.Release.Minor - 1}.Gates()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, name := range changedGates(before, now) {
		group.Go(func() error {
			gate := now[name]
			_, err := s.Run(ctx, fmt.Sprintf("--feature-gates=%s=%v", name, !gate.Default), "--version")
			mu.Lock()
			defer mu.Unlock()
			unknown, locked := said(err, "unrecognized feature gate"), said(err, "feature is locked to")
			if unknown == gate.Exists || locked != gate.Locked {
				t.Errorf("feature gate %s=%v: versions has %s, and the scheduler ends with %v", name, !gate.Default, gate, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func changedGates(before, now map[string]versions.Gate) []string {
	var names []string
	for name, gate := range now {
		if before[name] != gate {
			names = append(names, name)
		}
	}
	for name := range before {
		if !now[name].Exists {
			names = append(names, name)
		}
	}
	return names
}
