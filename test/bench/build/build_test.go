//go:build linux

// Package build measures how long it takes to compile the programs of a lab with an empty build
// cache: one program after the other with the garbage collector's defaults, and all with one go
// command.
package build

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/versions"
)

var release = versions.Release{Major: 1, Minor: 24, Patch: 3}

// A measurement of one side alone is `-bench 'Programs/together'`. Both sides compile the same
// bytes.
func BenchmarkPrograms(b *testing.B) {
	var all []build.Program
	for _, name := range programs.Kubernetes() {
		all = append(all, build.Program{Name: name})
	}
	var each [][]build.Program
	for _, p := range all {
		each = append(each, []build.Program{p})
	}
	seconds, sums := map[string]float64{}, map[string][]string{}
	for _, side := range []struct {
		name string
		runs [][]build.Program
		env  []string
	}{
		{"alone", each, []string{"GOGC=100"}},
		{"together", [][]build.Program{all}, nil},
	} {
		b.Run(side.name, func(b *testing.B) {
			download(b, all)
			cache, env := b.TempDir(), append(os.Environ(), "GOCACHE="+b.TempDir())
			b.ResetTimer()
			start, used := time.Now(), childrenTime(b)
			for _, run := range side.runs {
				result, err := build.Run(b.Context(), build.Options{
					Release: release, Programs: run, Environment: build.Environment{CacheDir: cache, Env: append(env, side.env...)},
				})
				if err != nil {
					b.Fatal(err)
				}
				for _, binary := range result.Binaries {
					sums[side.name] = append(sums[side.name], binary.Program+" "+binary.SHA256)
				}
			}
			seconds[side.name] = time.Since(start).Seconds()
			b.ReportMetric((childrenTime(b) - used).Seconds(), "cpu-s")
		})
	}
	if len(seconds) < 2 {
		return // one side was selected
	}
	if diff := cmp.Diff(sums["alone"], sums["together"]); diff != "" {
		b.Errorf("SHA-256 of the programs (-alone +together):\n%s", diff)
	}
	alone, together := seconds["alone"], seconds["together"]
	b.Logf("alone %.0f s, together %.0f s: %.2f of the time", alone, together, together/alone)
}

// childrenTime returns the processor time of the commands that have ended. It depends less on other
// load on the machine than wall-clock time.
func childrenTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// download fills Go's module cache, which a build does before it compiles.
func download(b *testing.B, programs []build.Program) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	_, err := build.Run(ctx, build.Options{
		Release: release, Programs: programs,
		Environment: build.Environment{CacheDir: b.TempDir(), Env: os.Environ(), OnStep: func(name string) func(error) {
			if strings.HasPrefix(name, "compile ") {
				cancel()
			}
			return nil
		}},
	})
	if !errors.Is(err, context.Canceled) {
		b.Fatalf("download the modules: got %v, want that compiling was canceled", err)
	}
}
