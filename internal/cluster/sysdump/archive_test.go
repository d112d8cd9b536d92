package sysdump

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
)

// filesOf returns the files of an archive.
func filesOf(t *testing.T, text []byte) map[string]string {
	t.Helper()
	uncompressed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(uncompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestEveryFileIsRedacted(t *testing.T) {
	r := redact.New()
	r.Learn([]byte("learned-value"))
	var out bytes.Buffer
	a := NewArchive(&out, "dump", r, time.Unix(0, 0))
	a.Text("log", "got learned-value")
	a.JSON("detect.json", struct {
		Password string `json:"password"`
		Name     string `json:"name"`
	}{"hunter2", "x"})
	a.Object("secret.yaml", map[string]any{"kind": "Secret", "data": map[string]any{"k": "aHVudGVyMg=="}})
	a.Failed("read x", errors.New("user learned-value cannot"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"dump/log":         "got REDACTED",
		"dump/detect.json": "{\n  \"name\": \"x\",\n  \"password\": \"REDACTED\"\n}\n",
		"dump/secret.yaml": "data:\n  k: REDACTED (12 bytes)\nkind: Secret\n",
		"dump/errors.txt":  "read x: user REDACTED cannot\n",
	}
	if diff := cmp.Diff(want, filesOf(t, out.Bytes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := a.Summary("f"); s.Files != 4 || len(s.Errors) != 1 || strings.Contains(s.Errors[0], "learned") {
		t.Errorf("summary %+v", s)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWritingFails(t *testing.T) {
	a := NewArchive(fullDisk{}, "dump", redact.New(), time.Unix(0, 0))
	a.Text("log", strings.Repeat("x", 1<<20))
	if err := a.Close(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}
