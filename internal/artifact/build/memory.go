package build

import (
	"bufio"
	goversion "go/version"
	"os"
	"strconv"
	"strings"
)

// Go compilers before 1.20 collect garbage less often if the machine has memory for that: at least
// minMemory, and memoryPerProcessor for each compiler that runs at the same time. Later compilers
// do so by themselves until their heap has 128 MiB, but not if GOGC is set.
const (
	compilerGC         = "GOGC=800"
	minMemory          = 8 << 30
	memoryPerProcessor = 2 << 30
)

// garbageCollection returns the variable for the garbage collector of the go command, the compilers
// and the linkers, which does not change their output. A value of the user takes precedence.
func garbageCollection(env []string, goVersion string, available int64, processors int) []string {
	if value := lookup(env, "GOGC"); value != "" {
		return []string{"GOGC=" + value}
	}
	need := max(minMemory, int64(processors)*memoryPerProcessor)
	if goversion.Compare("go"+goVersion, "go1.20") >= 0 || available < need {
		return nil
	}
	return []string{compilerGC}
}

// availableMemory returns how many bytes programs can use without swapping, within the container's
// limit. It returns 0 if that is unknown.
func availableMemory() int64 {
	available := memAvailable("/proc/meminfo")
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
			available = min(available, limit)
		}
	}
	return available
}

func memAvailable(path string) int64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "MemAvailable:"); found {
			kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
