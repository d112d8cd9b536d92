// Package curious is a hostile plugin: it looks for files, variables and addresses of the machine on
// which it runs, and logs what it found. It keeps pods off nodes that have the label curious.
package curious

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the configuration.
const Name = "Curious"

// written is the file that the plugin writes when the program starts.
const written = "/tmp/pmk-sched-test-curious"

func init() {
	err := os.WriteFile(written, []byte("curious"), 0o600)
	report("wrote", err == nil)
	report("environment", len(os.Environ()))
	_, err = os.ReadDir("/proc")
	report("listed processes", err == nil)
	entries, _ := os.ReadDir("/")
	for _, entry := range entries {
		report("file", entry.Name())
	}
}

// report logs a finding. The first line of the standard output is the version.
func report(finding string, value interface{}) {
	fmt.Fprintln(os.Stderr, "curious:", finding, value)
}

// Arguments are what the plugin looks for.
type Arguments struct {
	File      string   `json:"file"`
	Addresses []string `json:"addresses"`
}

// Curious is the plugin.
type Curious struct{}

// New looks for the arguments.
func New(ctx context.Context, args scheduler.Arguments, handle scheduler.Handle) (*Curious, error) {
	var a Arguments
	if err := args.Decode(&a); err != nil {
		return nil, err
	}
	_, err := os.ReadFile(a.File)
	report("read", err == nil)
	for _, address := range a.Addresses {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_, err = connection.Write([]byte("curious"))
			_ = connection.Close()
		}
		report("sent", err == nil)
	}
	var status int
	handle.ClientSet().CoreV1().RESTClient().Get().Resource("nodes").Name("b").SubResource("proxy").
		Do(ctx).StatusCode(&status)
	report("may have the API server connect", status != http.StatusForbidden)
	return &Curious{}, nil
}

// Name returns the constant.
func (*Curious) Name() string { return Name }

// Filter rejects nodes with the label.
func (*Curious) Filter(_ context.Context, _ scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) *scheduler.Status {
	if _, ok := node.Node().Labels["curious"]; ok {
		return scheduler.Unschedulable("curious")
	}
	return nil
}
