package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// kubeletNamespace is the containerd namespace of the kubelet's images (containerd,
// internal/cri/constants).
const kubeletNamespace = "k8s.io"

// killDelay is the time to wait for a killed program to exit.
const killDelay = 5 * time.Second

// containerd is a containerd instance. It is used through its client program, ctr: its Go client
// would double this program's size.
type containerd struct{ socket string }

// LoadContainerd imports the image for this machine into the namespace k8s.io in the containerd
// that listens on socket ("" means DefaultContainerdSocket), under ref's canonical name, which the
// kubelet uses.
func LoadContainerd(ctx context.Context, b *Built, ref, socket string) error {
	c := newContainerd(socket)
	img, err := b.host("load into containerd")
	if err != nil {
		return err
	}
	canonical, err := CanonicalName(ref)
	if err != nil {
		return err
	}
	if err := c.load(ctx, img, ref); err != nil {
		return fmt.Errorf("load %s into containerd: %w", canonical, err)
	}
	if found, err := c.has(ctx, canonical); err != nil || found {
		return err
	}
	return problem.Errorf("see `ctr -n k8s.io images ls`",
		"load %s into containerd: it was imported under another name", canonical)
}

// InContainerd reports whether the containerd at the default socket has an image for the kubelet
// with that name.
func InContainerd(ctx context.Context, ref string) (bool, error) {
	canonical, err := CanonicalName(ref)
	if err != nil {
		return false, err
	}
	return newContainerd("").has(ctx, canonical)
}

// ContainerdHasImages reports whether the containerd at the default socket has images for the
// kubelet. It has none if the kubelet uses another runtime.
func ContainerdHasImages(ctx context.Context) (bool, error) {
	var names bytes.Buffer
	err := newContainerd("").run(ctx, nil, &names, "images", "ls", "-q")
	return names.Len() > 0, err
}

// pullIntoContainerd pulls an image for this machine from its registry into the containerd at the
// default socket, under the name that the kubelet uses.
func pullIntoContainerd(ctx context.Context, ref string) error {
	canonical, err := CanonicalName(ref)
	if err != nil {
		return err
	}
	return Source{Reference: ref, Keychain: authn.DefaultKeychain}.open(ctx, "", "",
		func(img v1.Image, _ string) error {
			if err := newContainerd("").load(ctx, img, ref); err != nil {
				return fmt.Errorf("pull %s into containerd: %w", canonical, err)
			}
			return nil
		})
}

func (c containerd) load(ctx context.Context, img v1.Image, ref string) error {
	archive := func(w io.Writer) error { return writeArchive(ctx, img, ref, w) }
	return c.run(ctx, archive, nil, "images", "import", "-")
}

func (c containerd) has(ctx context.Context, canonical string) (bool, error) {
	var names bytes.Buffer
	if err := c.run(ctx, nil, &names, "images", "ls", "-q", "name=="+canonical); err != nil {
		return false, fmt.Errorf("find %s in containerd: %w", canonical, err)
	}
	return strings.TrimSpace(names.String()) == canonical, nil
}

// export writes an image to file as a docker archive of one platform.
func (c containerd) export(ctx context.Context, ref, platform, file string) error {
	canonical, err := CanonicalName(ref)
	if err != nil {
		return err
	}
	err = safeio.WriteFile(ctx, file, 0o644, func(f *os.File) error {
		return c.run(ctx, nil, f, "images", "export", "--platform", platform, "-", canonical)
	})
	if err != nil && strings.Contains(err.Error(), "not found") {
		return problem.Errorf("it may not be on this node, or without its layers (discard_unpacked_layers)",
			"read %s from containerd: %w", canonical, err)
	}
	if err != nil {
		return fmt.Errorf("read %s from containerd: %w", canonical, err)
	}
	return nil
}

func newContainerd(socket string) containerd {
	if socket == "" {
		socket = DefaultContainerdSocket
	}
	return containerd{socket: socket}
}

// run runs ctr with stdin written by feed and stdout going to out; both may be nil.
func (c containerd) run(ctx context.Context, feed func(io.Writer) error, out io.Writer, args ...string) error {
	if _, err := os.Stat(c.socket); err != nil {
		hint := "check that containerd is running; set its socket with containerd=PATH"
		if errors.Is(err, fs.ErrPermission) {
			hint = "run as root"
		}
		return problem.Errorf(hint, "no containerd socket: %w", err)
	}
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"-a", c.socket, "-n", kubeletNamespace}, args...)...)
	cmd.Stdout = out
	err := feedCommand(ctx, cmd, feed)
	if errors.Is(err, exec.ErrNotFound) {
		return problem.Errorf("install containerd, which includes it; or write a docker archive and import it manually",
			"the containerd client ctr is not installed: %w", err)
	}
	return err
}

// feedCommand runs cmd with stdin written by feed. The error is feed's error, or else the end of
// the program's output. If the program closed the pipe, its output is the cause.
func feedCommand(ctx context.Context, cmd *exec.Cmd, feed func(io.Writer) error) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = killDelay
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var fed error
	if feed != nil {
		fed = feed(stdin)
	}
	fed = errors.Join(fed, stdin.Close())
	ended := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case fed != nil && !errors.Is(fed, syscall.EPIPE) && !errors.Is(fed, os.ErrClosed):
		return fed
	case ended != nil:
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), ended, lastLines(stderr.String(), 5))
	}
	return fed
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
