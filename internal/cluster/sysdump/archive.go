// Package sysdump writes the facts about a cluster that a bug report needs to one archive.
// Everything written passes through a redactor.
package sysdump

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
)

// errorsName names the last file, which lists the read errors.
const errorsName = "errors.txt"

// Archive is an archive that is being written.
type Archive struct {
	redact *redact.Redactor
	gzip   *gzip.Writer
	tar    *tar.Writer
	now    time.Time
	dir    string
	errors []string
	files  int
	bytes  int64
	err    error // the first error of writing
}

// NewArchive begins an archive. Its files are below a directory with that name.
func NewArchive(w io.Writer, dir string, r *redact.Redactor, now time.Time) *Archive {
	compressed := gzip.NewWriter(w)
	return &Archive{redact: r, gzip: compressed, tar: tar.NewWriter(compressed), now: now, dir: dir}
}

// Text adds a text file.
func (a *Archive) Text(name, text string) { a.write(name, a.redact.Text(text)) }

// Object adds an object, as YAML.
func (a *Archive) Object(name string, object map[string]any) {
	text, err := yaml.Marshal(a.redact.Value(object))
	if err != nil {
		a.Failed(name, err)
		return
	}
	a.write(name, string(text))
}

// JSON adds a value, as JSON.
func (a *Archive) JSON(name string, value any) {
	text, err := json.Marshal(value)
	var parsed any
	if err == nil {
		err = json.Unmarshal(text, &parsed)
	}
	if err == nil {
		text, err = json.MarshalIndent(a.redact.Value(parsed), "", "  ")
	}
	if err != nil {
		a.Failed(name, err)
		return
	}
	a.write(name, string(text)+"\n")
}

// Failed notes that something could not be read.
func (a *Archive) Failed(what string, err error) {
	a.errors = append(a.errors, strings.TrimSpace(a.redact.Text(fmt.Sprintf("%s: %v", what, err))))
}

// write adds a file.
func (a *Archive) write(name, text string) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: a.dir + "/" + name, Size: int64(len(text)), Mode: 0o600,
		ModTime: a.now, Format: tar.FormatPAX}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = io.WriteString(a.tar, text)
	}
	a.files++
	a.bytes += int64(len(text))
}

// Close writes the read errors and ends the archive.
func (a *Archive) Close() error {
	text := "All was read.\n"
	if len(a.errors) > 0 {
		text = strings.Join(a.errors, "\n") + "\n"
	}
	a.write(errorsName, text)
	if err := errors.Join(a.err, a.tar.Close(), a.gzip.Close()); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// Summary describes an archive.
type Summary struct {
	Archive string `json:"archive"`
	Files   int    `json:"files"`
	// Bytes is the size of the files before compression.
	Bytes int64 `json:"bytes"`
	// Errors has a message for all that could not be read.
	Errors []string `json:"errors"`
}

// Summary describes the written archive.
func (a *Archive) Summary(file string) *Summary {
	return &Summary{Archive: file, Files: a.files, Bytes: a.bytes, Errors: append([]string{}, a.errors...)}
}
