package image

import (
	"context"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// Runtime is a container runtime of this machine to load an image into.
type Runtime struct {
	// Name is containerd or docker. Socket is containerd's socket. Defaults to the default socket.
	Name, Socket string
}

// Destinations are the places that [Deliver] writes an image to.
type Destinations struct {
	// Archives are paths: a docker archive if it ends in .tar, an OCI layout otherwise.
	Archives []string
	// Layout is an OCI layout of several images to add the image to. It may be nil.
	Layout *Layout
	Load   []Runtime
	// Push pushes the image to the registry that its reference names.
	Push bool
}

// None reports whether Destinations is empty.
func (d Destinations) None() bool {
	return len(d.Archives) == 0 && d.Layout == nil && len(d.Load) == 0 && !d.Push
}

// Deliver writes the image to every destination, each as a step, and returns their names.
func Deliver(
	ctx context.Context, built *Built, reference string, to Destinations, onStep steps.OnStep,
) ([]string, error) {
	written := []string{}
	step := func(name, destination string, do func() error) error {
		err := onStep.Do(name, do)
		if err == nil {
			written = append(written, destination)
		}
		return err
	}
	for _, path := range to.Archives {
		write := WriteLayout
		if strings.HasSuffix(path, ".tar") {
			write = WriteArchive
		}
		if err := step("write "+path, path, func() error { return write(ctx, built, reference, path) }); err != nil {
			return written, err
		}
	}
	if l := to.Layout; l != nil {
		if err := step("write "+l.dir, l.dir, func() error { return l.add(ctx, built, reference) }); err != nil {
			return written, err
		}
	}
	for _, runtime := range to.Load {
		err := step("load into "+runtime.Name, runtime.Name, func() error {
			if runtime.Name == "docker" {
				return loadDocker(ctx, built, reference)
			}
			return LoadContainerd(ctx, built, reference, runtime.Socket)
		})
		if err != nil {
			return written, err
		}
	}
	if !to.Push {
		return written, nil
	}
	err := step("push "+reference, "registry", func() error {
		_, err := Push(ctx, built, reference, authn.DefaultKeychain)
		return err
	})
	return written, err
}

// EnsureInContainerd makes sure that this node's containerd has an image: the kubelet may need
// minutes to pull one. Without containerd at its default socket it warns.
func EnsureInContainerd(ctx context.Context, reference string, warn func(string), onStep steps.OnStep) error {
	const hint = "load it on this node: `pmk-sched build … --load containerd`, or `ctr -n k8s.io images import FILE.tar`"
	if _, err := os.Stat(DefaultContainerdSocket); err != nil {
		warn("pmk-sched cannot check whether the node has the image: containerd was not found: " + err.Error())
		return nil //nolint:nilerr // another runtime, which the kubelet knows
	}
	present, err := InContainerd(ctx, reference)
	if err != nil || present {
		return err
	}
	if IsLocal(reference) {
		return problem.Invalidf(hint, "image %s is not on this node, and no registry has it", reference)
	}
	err = onStep.Do("pull "+reference, func() error { return pullIntoContainerd(ctx, reference) })
	if err != nil {
		return problem.Invalidf(hint, "image %s is not on this node and cannot be pulled: %w", reference, err)
	}
	return nil
}
