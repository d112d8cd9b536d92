package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLogsAreLimited(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartProcess(log, "/bin/echo", "12345")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("the end of the process is not noticed")
	}
	for _, limit := range []struct{ most, size int64 }{{6, 6}, {5, 0}} {
		if err := p.LimitLog(limit.most); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(log); err != nil || info.Size() != limit.size {
			t.Errorf("at most %d bytes: %v, %v", limit.most, info, err)
		}
	}
}
