package kubeadm

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Images are a cluster's images, by the last element of their names, such as "pause".
type Images map[string]string

// ListImages returns a release's images, as its own kubeadm names them. program is its path, path a
// list of directories with programs.
func ListImages(ctx context.Context, program string, r versions.Release, path string) (Images, error) {
	// With a complete configuration kubeadm looks at nothing on this machine. The addresses and the
	// token do not matter.
	c := Cluster{
		Release: r, Services: "10.96.0.0/16", Socket: "/run/containerd/containerd.sock", Token: "abcdef.0123456789abcdef",
	}
	config, err := c.Init(Node{Name: "lab", Address: netip.AddrFrom4([4]byte{192, 0, 2, 1}), ControlPlane: true})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, imagesArgs("/dev/stdin")...)
	cmd.Env = []string{"PATH=" + path, "HOME=/root", "LANG=C"}
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(config), &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("list the images of %s: %w: %s", r, err, strings.TrimSpace(problems.String()))
	}
	return parseImages(out.String())
}

// parseImages reads the output of the command with [imagesArgs]. It must contain the images for
// every component and "pause".
func parseImages(list string) (Images, error) {
	images := Images{}
	for ref := range strings.FieldsSeq(list) {
		name, _, tagged := strings.Cut(path.Base(ref), ":")
		if tagged {
			images[name] = ref
		}
	}
	for _, name := range append(Components(), "pause") {
		if images[name] == "" {
			return nil, fmt.Errorf("read kubeadm's list of images: no image %s in %q", name, list)
		}
	}
	return images, nil
}

// EtcdVersion returns the version of etcd in its image: "v3.5.3" for a tag "3.5.3-0".
func (i Images) EtcdVersion() string {
	_, tag, _ := strings.Cut(path.Base(i["etcd"]), ":")
	version, _, _ := strings.Cut(tag, "-")
	return "v" + strings.TrimPrefix(version, "v")
}
