package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// loadDocker loads the image for this machine into the Docker engine that the docker program uses
// (DOCKER_HOST, contexts), under ref's canonical name. The engine's Go client would be a large
// dependency.
func loadDocker(ctx context.Context, b *Built, ref string) error {
	img, err := b.host("load into Docker")
	if err != nil {
		return err
	}
	canonical, err := CanonicalName(ref)
	if err != nil {
		return err
	}
	const instead = "; or write a docker archive, or load into containerd"
	archive := func(w io.Writer) error { return writeArchive(ctx, img, ref, w) }
	err = feedCommand(ctx, exec.CommandContext(ctx, "docker", "load", "--quiet"), archive)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return problem.Errorf("install Docker"+instead, "load %s into Docker: the docker program is not installed: %w",
			canonical, err)
	case err != nil && strings.Contains(err.Error(), "Cannot connect to the Docker daemon"):
		return problem.Errorf("start the Docker engine, or set DOCKER_HOST"+instead,
			"load %s into Docker: the engine does not respond: %w", canonical, err)
	case err != nil:
		return fmt.Errorf("load %s into Docker: %w", canonical, err)
	}
	return nil
}
