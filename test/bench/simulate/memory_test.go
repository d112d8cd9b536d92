//go:build linux

package simulate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// watchMemory looks at the memory of all processes that this one starts, five times a second. The
// returned function ends that and returns the most that they had together, in MiB. Memory that they
// share is counted for each.
func watchMemory(b *testing.B) func() (most float64) {
	b.Helper()
	done, result := make(chan struct{}), make(chan float64)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		most := 0.0
		for {
			select {
			case <-done:
				result <- most
				return
			case <-tick.C:
				most = max(most, descendantsMiB(os.Getpid()))
			}
		}
	}()
	return func() float64 {
		close(done)
		return <-result
	}
}

// descendantsMiB returns the resident memory of the descendants of a process (proc(5), fields 4 and
// 24 of stat). Processes that end meanwhile are left out.
func descendantsMiB(root int) float64 {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	children, pages := map[int][]int{}, map[int]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(string(text), " (")
		fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:]) // from the third on
		pid, _ := strconv.Atoi(name)
		parent, _ := strconv.Atoi(fields[1])
		pages[pid], _ = strconv.Atoi(fields[21])
		children[parent] = append(children[parent], pid)
	}
	total := 0
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		total += pages[queue[0]]
		queue = append(queue, children[queue[0]]...)
	}
	return float64(total*os.Getpagesize()) / (1 << 20)
}
