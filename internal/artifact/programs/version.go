package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// versionTime is the maximum time for a program to print its version.
const versionTime = 20 * time.Second

// versionOf runs a program and returns the version that it prints. It fails if the program is not
// one for this machine. The runner prints no version, and the version of kwok is not read.
func versionOf(ctx context.Context, name, file string) (string, error) {
	args, form := []string{"--version"}, regexp.MustCompile(`^Kubernetes (v\S+)`)
	switch name {
	case Runner, Kwok:
		return "", nil
	case Etcd:
		form = regexp.MustCompile(`^etcd Version: (\d\S*)`)
	case "kubectl":
		args, form = []string{"version", "--client", "--output=json"}, regexp.MustCompile(`"gitVersion": "(v[^"]+)"`)
	case "kubeadm":
		args, form = []string{"version", "--output=short"}, regexp.MustCompile(`^(v\S+)`)
	}
	out, err := output(ctx, file, args)
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", name, args[0], err)
	}
	match := form.FindSubmatch(bytes.TrimSpace(out))
	if match == nil {
		return "", fmt.Errorf("run %s %s: no version in its output", name, args[0])
	}
	if name == Etcd {
		return "v" + string(match[1]), nil
	}
	return string(match[1]), nil
}

// output runs a program. A process that another goroutine started while the program was written may
// hold it open for writing for a moment (golang/go#22315), so that it cannot run yet.
func output(ctx context.Context, file string, args []string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		cmd := exec.CommandContext(ctx, file, args...)
		cmd.Env = []string{"HOME=/nonexistent"} // kubectl reads a kubeconfig there
		out, err = cmd.Output()
		if !errors.Is(err, syscall.ETXTBSY) || clock.Sleep(ctx, pause) != nil {
			return out, err
		}
	}
}
