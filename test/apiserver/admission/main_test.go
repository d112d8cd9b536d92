//go:build linux

// Package admission runs the admission webhooks as processes, with the permissions of their
// ServiceAccount, and binds pods through a real API server that asks them.
package admission

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

var (
	server *apiserver.Server
	// auditLog has the requests to the server.
	auditLog string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (status int) {
	dir, err := os.MkdirTemp("", "admission-")
	if err == nil {
		defer os.RemoveAll(dir)
		server, auditLog, err = apiserver.StartAudited(context.Background(), dir, webhooks.Flags()...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start API server for the tests:", err)
		return 1
	}
	defer func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stop API server of the tests:", err)
			status = 1
		}
	}()
	return m.Run()
}
