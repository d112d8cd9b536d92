//go:build linux

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/versions"
)

// helper, set to a state directory, makes the test binary start a lab in it: a process to kill.
// With helperMasters, kubeadm creates the lab with that number of control-plane nodes.
const helper, helperMasters = "PMK_SCHED_LABTEST_UP", "PMK_SCHED_LABTEST_MASTERS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		os.Exit(bringUp(dir))
	}
	os.Exit(labs.Main(m))
}

// bringUp starts a lab and prints each step when it begins.
func bringUp(stateDir string) int {
	release, err := versions.Parse(labs.Release)
	if err != nil {
		return 1
	}
	o := lab.Options{
		Name: prefix + "killed", Release: release, StateDir: stateDir, CacheDir: os.Getenv("PMK_SCHED_CACHE"),
		Env: os.Environ(), Nodes: 2,
		OnStep: func(step string) func(error) {
			fmt.Println(step)
			return nil
		},
	}
	if masters, _ := strconv.Atoi(os.Getenv(helperMasters)); masters > 0 {
		o.Layout, o.Masters = lab.LayoutKubeadm, masters
	}
	if _, err := lab.Up(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up")
	return 0
}
