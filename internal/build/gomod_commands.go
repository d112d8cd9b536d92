package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// download is what `go mod download -json` prints about one module.
type download struct {
	Path, Version, Error string
	Info, Dir            string
	Sum, GoModSum        string
}

func (d download) String() string { return d.Path + "@" + d.Version }

// download fetches modules, several at a time, into Go's module cache. A module
// that could not be had carries its own Error; the error returned is about the
// go command as a whole.
func (j *job) download(ctx context.Context, step string, modules ...string) ([]download, error) {
	return ask[download](ctx, j, step, append([]string{"mod", "download", "-json"}, modules...)...)
}

// listed is what `go list -m -json` prints about one module.
type listed struct {
	Path, Version string
	Versions      []string
	Error         *struct{ Err string }
}

// list looks modules up without downloading them.
func (j *job) list(ctx context.Context, step string, arguments ...string) ([]listed, error) {
	return ask[listed](ctx, j, step, append([]string{"list", "-m", "-e", "-json"}, arguments...)...)
}

// ask runs a go command that prints one JSON document per module. It may end
// with a failure and still have said for each module what is wrong with it.
func ask[T any](ctx context.Context, j *job, step string, args ...string) ([]T, error) {
	golang, err := j.findGo(ctx)
	if err != nil {
		return nil, err
	}
	out, runErr := j.run(ctx, golang.asking(j.space.tmp, args...))
	var answers []T
	decoder := json.NewDecoder(bytes.NewReader(out.stdout))
	for {
		var answer T
		err := decoder.Decode(&answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			runErr = errors.Join(runErr, fmt.Errorf("read what go printed: %w", err))
			break
		}
		answers = append(answers, answer)
	}
	if runErr != nil && (!exited(runErr) || len(answers) == 0) {
		return nil, failure(ctx, step, out.tail, runErr)
	}
	return answers, nil
}
