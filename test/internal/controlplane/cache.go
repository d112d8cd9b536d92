//go:build linux

package controlplane

import (
	"context"
	"regexp"
	"strings"
	"syscall"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

var (
	// cacheDump matches the cache dump that a kube-scheduler writes at SIGUSR2
	// (cache/debugger/dumper.go).
	cacheDump = regexp.MustCompile(`(?s)Dump of cached NodeInfo(.*?)Dump of scheduling queue`)
	// cachedObject matches a node, unless it is deleted and still has pods, or the UID of a pod.
	// Newlines are escaped in some releases and indented in others.
	cachedObject = regexp.MustCompile(`Node name: ([^\s\\]+)(?:\\n|\s+)Deleted: false|, uid: ([^,]+),`)
)

// AwaitCache waits until a condition is met by the names of the nodes and the UIDs of the pods in
// the cache of a kube-scheduler. An event in the log is not enough: the handlers of
// pkg/scheduler/eventhandlers.go write it before they change the cache. Before 1.28 kube-scheduler
// schedules as soon as it has listed all objects, while handlers still add them to its cache.
func (p *Process) AwaitCache(met func(cached map[string]bool) (bool, string)) {
	p.t.Helper()
	from := len(p.Log())
	run.Eventually(p.t, "the cache of the scheduler is up to date", func(context.Context) (bool, string) {
		log := p.Log()
		if !strings.Contains(log, "event for node") {
			return false, "the scheduler does not handle signals yet"
		}
		if err := syscall.Kill(p.PID(), syscall.SIGUSR2); err != nil {
			p.t.Fatal(err)
		}
		dumps := cacheDump.FindAllString(log[from:], -1)
		if len(dumps) == 0 {
			return false, "no dump of the cache"
		}
		cached := map[string]bool{}
		for _, found := range cachedObject.FindAllStringSubmatch(dumps[len(dumps)-1], -1) {
			cached[found[1]+found[2]] = true
		}
		return met(cached)
	})
}
