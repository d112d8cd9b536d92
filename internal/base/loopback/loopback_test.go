package loopback_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/loopback"
)

func TestLoopbackHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.9.8.7:443": true, "::1": true, "[::1]": true,
		"[::1]:5000": true, "": false, "localhost.example.com": false, "10.0.0.1:443": false, "fd00::1": false,
	} {
		if got := loopback.Is(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}
