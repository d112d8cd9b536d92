package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// download is the output of `go mod download -json` for one module.
type download struct {
	Path, Version, Error string
	Info, Dir            string
	Sum, GoModSum        string
}

func (d download) String() string { return d.Path + "@" + d.Version }

// download downloads modules into Go's module cache, several at a time. A module that is
// unavailable has its own Error; the returned error is about the go command.
func (t *goTool) download(ctx context.Context, step string, modules ...string) ([]download, error) {
	return query[download](ctx, t, step, append([]string{"mod", "download", "-json"}, modules...)...)
}

// listed is the output of `go list -m -json` for one module.
type listed struct {
	Path, Version string
	Versions      []string
	Error         *struct{ Err string }
}

// list looks modules up without downloading them.
func (t *goTool) list(ctx context.Context, step string, arguments ...string) ([]listed, error) {
	return query[listed](ctx, t, step, append([]string{"list", "-m", "-e", "-json"}, arguments...)...)
}

// query runs a go command that prints one JSON document per module. The command may fail and still
// print an error for each module.
func query[T any](ctx context.Context, t *goTool, step string, args ...string) ([]T, error) {
	golang, err := t.find(ctx)
	if err != nil {
		return nil, err
	}
	space, err := t.work.get(ctx)
	if err != nil {
		return nil, err
	}
	out, runErr := t.run(ctx, golang.query(space.tmp, args...))
	var answers []T
	decoder := json.NewDecoder(bytes.NewReader(out.stdout))
	for {
		var answer T
		err := decoder.Decode(&answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			runErr = errors.Join(runErr, fmt.Errorf("parse the output of go: %w", err))
			break
		}
		answers = append(answers, answer)
	}
	if runErr != nil && (!exited(runErr) || len(answers) == 0) {
		return nil, failure(ctx, step, out.tail, runErr)
	}
	return answers, nil
}
