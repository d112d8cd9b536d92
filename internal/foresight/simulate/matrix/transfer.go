package matrix

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const (
	// dataLine and endLine are the prefixes for an outcome's lines in a log. The remaining lines are
	// messages.
	dataLine = "pmk-sched-result "
	endLine  = "pmk-sched-result-end "
	// chunkBytes keeps a line shorter than 16 KiB, at which container runtimes split it.
	chunkBytes = 9000
	// maxLine bounds a line in a log, and maxOutcome an outcome after decompression, in bytes.
	maxLine, maxOutcome = 1 << 20, 1 << 30
	// maxCells bounds the environment variable with the simulation list, in bytes: Linux accepts 128
	// KiB for each variable (MAX_ARG_STRLEN).
	maxCells = 120 << 10
)

// packCells returns simulations as a value for an environment variable.
func packCells(cells []plannedCell) (string, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(zip).Encode(cells), zip.Close()); err != nil {
		return "", fmt.Errorf("write the list of simulations: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(text) > maxCells {
		return "", problem.Invalidf("use fewer snapshots, scenarios or schedulers",
			"%d simulations are too many for one Job: their list has %d bytes, at most %d are possible", len(cells), len(text),
			maxCells)
	}
	return text, nil
}

// unpackCells reverses [packCells].
func unpackCells(text string) (cells []plannedCell, err error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read the list of simulations: %w", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(zip, maxOutcome)).Decode(&cells)
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of simulations: %w", err)
	}
	return cells, nil
}

// writeOutcome writes the outcome for the simulation with an index to a log: compressed, since the
// kubelet starts a new file at 10 MiB (containerLogMaxSize) and returns only the last one; in
// numbered lines; and with a checksum in the last line.
func writeOutcome(w io.Writer, index int, o Outcome) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(zip).Encode(o), zip.Close()); err != nil {
		return fmt.Errorf("write result %d: %w", index, err)
	}
	out := bufio.NewWriter(w)
	sum, lines := sha256.Sum256(packed.Bytes()), 0
	for data := packed.Bytes(); len(data) > 0; lines++ {
		n := min(chunkBytes, len(data))
		fmt.Fprintf(out, "%s%d %d %s\n", dataLine, index, lines, base64.StdEncoding.EncodeToString(data[:n]))
		data = data[n:]
	}
	fmt.Fprintf(out, "%s%d %d %x\n", endLine, index, lines, sum)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write result %d: %w", index, err)
	}
	return nil
}

// readOutcome reads the outcome for the simulation with an index from a log. It fails unless the
// outcome is there completely, unchanged.
func readOutcome(r io.Reader, index int) (o Outcome, err error) {
	var packed bytes.Buffer
	lines, ended := 0, ""
	log := bufio.NewScanner(r)
	log.Buffer(nil, maxLine)
	for log.Scan() {
		if text, ok := strings.CutPrefix(log.Text(), endLine); ok {
			ended = text
		}
		text, ok := strings.CutPrefix(log.Text(), dataLine)
		if !ok {
			continue
		}
		data, ok := strings.CutPrefix(text, fmt.Sprintf("%d %d ", index, lines))
		if !ok {
			return o, incomplete("line %d of the result is missing", lines)
		}
		part, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return o, incomplete("line %d of the result: %w", lines, err)
		}
		packed.Write(part)
		lines++
	}
	if err := log.Err(); err != nil {
		return o, fmt.Errorf("read the log: %w", err)
	}
	if ended == "" {
		return o, incomplete("the end of the result is missing")
	}
	if ended != fmt.Sprintf("%d %d %x", index, lines, sha256.Sum256(packed.Bytes())) {
		return o, incomplete("the checksum of the result differs")
	}
	zip, err := gzip.NewReader(&packed)
	if err != nil {
		return o, fmt.Errorf("read the result: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(zip, maxOutcome)).Decode(&o); err != nil {
		return o, fmt.Errorf("read the result: %w", err)
	}
	if o.Result == nil && o.Error == "" {
		return o, errors.New("read the result: it is empty")
	}
	return o, nil
}

// incomplete returns the error for a log that lacks part of the outcome.
func incomplete(format string, args ...any) error {
	return problem.Errorf(
		"nodes keep at least 10 MiB of a log by default: check containerLogMaxSize in the configuration of the kubelet",
		"the log is incomplete: %w", fmt.Errorf(format, args...))
}
