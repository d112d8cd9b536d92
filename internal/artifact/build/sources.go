package build

import (
	"context"
	"errors"

	"github.com/pmk-sched/pmk-sched/versions"
)

// SourceDirs downloads modules of a release, unless Go's module cache has them, and returns their
// directories by path. A module that is missing has none: not every release has each.
func SourceDirs(
	ctx context.Context, release versions.Release, paths []string, e Environment,
) (_ map[string]string, err error) {
	j, err := newJob(e)
	if err != nil {
		return nil, err
	}
	defer j.close(&err)
	step := "download the sources of " + release.String()
	dirs := map[string]string{}
	err = j.goTool.step(step, func() error {
		answers, err := j.goTool.download(ctx, step, atVersion(paths, release)...)
		for _, answer := range answers {
			if answer.Error == "" {
				dirs[answer.Path] = answer.Dir
				continue
			}
			if failed := diagnose(step, redact(answer.Error), errors.New("go mod download failed")); !isMissing(failed) {
				return failed
			}
		}
		return err
	})
	return dirs, err
}
