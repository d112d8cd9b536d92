package replace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/replace/noderun"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Files in [noderun.SchedulerDir]: the program, and where it was.
const (
	copiedProgram = "kube-scheduler"
	copiedFrom    = "image.json"
)

// ReadImage writes the kube-scheduler in the container that this process runs in to a directory,
// for [OnNode].
func ReadImage(environ []string, dir string, command []string) error {
	workingDir, err := os.Getwd()
	if err != nil {
		return err
	}
	program, err := image.CopyProgram("/", environ, workingDir, command, filepath.Join(dir, copiedProgram))
	if err != nil {
		return err
	}
	text, err := json.Marshal(program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, copiedFrom), text, 0o644) //nolint:gosec // another user of the pod reads it
}

// OnNode executes a request on the node of the pod that this process runs in, and returns a
// [Outcome] or a [RestoreOutcome]. version is this pmk-sched's version.
func OnNode(ctx context.Context, s *session.Session, request []byte, version string) (any, error) {
	r, err := decodeRequest(request, version)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(staticpod.StateDir, 0o700); err != nil { // a kubelet may have created it
		return nil, problem.NodeFile("protect", staticpod.StateDir, err)
	}
	if r.Restore {
		return RestoreNode(ctx, s, r.Force)
	}
	n := &Node{s: s, o: r.Options}
	n.o.Names = inspect.MachineNames()
	if err := n.inspect(ctx); err != nil {
		return nil, err
	}
	n.deps.EnsureImage = func(_ context.Context, reference string) error { return r.expect(reference) }
	n.deps.Binary, n.deps.Signed = r.binary, r.signed
	return Ensure(ctx, n.deps, n.info, n.o)
}

// decodeRequest reads a request from the same pmk-sched.
func decodeRequest(text []byte, version string) (*nodeRequest, error) {
	var from struct{ Version string }
	if err := json.Unmarshal(text, &from); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if from.Version != version {
		return nil, problem.Invalidf("pack that one with `pmk-sched build self` and name the image with --pod-image",
			"the image has pmk-sched %s, and the request is from pmk-sched %s", version, from.Version)
	}
	r := &nodeRequest{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return r, nil
}

// expect returns an error unless reference is the request's image, whose program the pod has. The
// kubelet has pulled that image for the pod.
func (r *nodeRequest) expect(reference string) error {
	if reference != r.Scheduler {
		return fmt.Errorf("the manifest names image %s, and the API server showed %s: run the command again", reference,
			r.Scheduler)
	}
	return nil
}

// signed accepts the request's image, which was verified before the request was sent.
func (r *nodeRequest) signed(_ context.Context, required pack.SignatureRequest) (string, error) {
	reference := required.Reference
	if required.Key != r.Options.Request.Spec.Image.RequireSignature || !strings.Contains(reference, "@") {
		return "", problem.Invalidf("add --require-signature with the public key, or none",
			"image %s must be signed, as the replacement of this node requires", reference)
	}
	return reference, nil
}

// binary returns the program that a container in the pod read from the scheduler's image.
func (r *nodeRequest) binary(_ context.Context, reference string, command []string,
	_ string) (configcheck.Binary, error) {
	if err := r.expect(reference); err != nil {
		return configcheck.Binary{}, err
	}
	if !slices.Equal(command, r.Programs) {
		return configcheck.Binary{},
			fmt.Errorf("the manifest runs %q, and the API server showed %q: run the command again", command, r.Programs)
	}
	text, err := os.ReadFile(filepath.Join(noderun.SchedulerDir, copiedFrom))
	program := image.Program{}
	if err = errors.Join(err, json.Unmarshal(text, &program)); err != nil {
		return configcheck.Binary{}, fmt.Errorf("read what was copied from image %s: %w", reference, err)
	}
	return configcheck.Binary{Path: filepath.Join(noderun.SchedulerDir, copiedProgram), Origin: "image " + reference,
		Missing: program.Missing}, nil
}
