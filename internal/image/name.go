package image

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

const nameHint = "write NAME:TAG, such as localhost/my-scheduler:v1 or registry.example.com/team/my-scheduler:v1"

// CanonicalName is the full form of an image name: registry, repository, and tag
// or digest. It is what the kubelet makes of the name in a pod, and what
// containerd has to record for the image to be found.
func CanonicalName(ref string) (string, error) {
	r, err := parseReference(ref, false)
	if err != nil {
		return "", err
	}
	return canonical(r), nil
}

// canonical is like r.Name, but names the default registry as the kubelet does:
// go-containerregistry puts its index host there.
func canonical(r name.Reference) string {
	if r.Context().RegistryStr() != name.DefaultRegistry {
		return r.Name()
	}
	return strings.TrimPrefix(r.Name(), "index.")
}

// parseReference reads an image name. Plain HTTP is allowed when insecure, and
// for registries on this machine.
func parseReference(ref string, insecure bool) (name.Reference, error) {
	r, err := name.ParseReference(ref)
	if err == nil && (insecure || loopback(r.Context().RegistryStr())) {
		r, err = name.ParseReference(ref, name.Insecure)
	}
	if err != nil {
		return nil, problem.Invalidf(nameHint, "image name %q: %w", ref, err)
	}
	return r, nil
}

// parseTag reads the name an image is to get. Its String is the canonical name.
func parseTag(ref string, insecure bool) (name.Tag, error) {
	r, err := parseReference(ref, insecure)
	if err != nil {
		return name.Tag{}, err
	}
	if _, ok := r.(name.Tag); !ok {
		return name.Tag{}, problem.Invalidf(nameHint, "image name %q: a digest cannot be given to a new image, only a tag", ref)
	}
	opts := []name.Option{}
	if r.Context().Scheme() == "http" {
		opts = append(opts, name.Insecure)
	}
	tag, err := name.NewTag(canonical(r), opts...)
	if err != nil {
		return name.Tag{}, problem.Invalidf(nameHint, "image name %q: %w", ref, err)
	}
	return tag, nil
}

// loopback reports whether a registry host, with or without port, is this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// ParseBase tells from what a person typed which kind of base it is: a folder is
// an OCI layout, a file is a docker archive, anything else a registry reference.
// What looks like a path but is not there is an Invalid error.
func ParseBase(s string) (Base, error) {
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		if _, err := os.Stat(filepath.Join(s, "index.json")); err == nil {
			return Base{Layout: s}, nil
		}
		if !pathlike(s) {
			break
		}
		return Base{}, problem.Invalidf("give an OCI layout folder, a docker archive, or an image name", "base %s: the folder has no index.json, so it is no OCI layout", s)
	case err == nil:
		return Base{Archive: s}, nil
	case pathlike(s):
		return Base{}, problem.Invalidf("give an OCI layout folder, a docker archive, or an image name", "base %s: %w", s, err)
	}
	if _, err := parseReference(s, false); err != nil {
		return Base{}, err
	}
	return Base{Reference: s}, nil
}

// pathlike reports whether s can only be meant as a path.
func pathlike(s string) bool {
	if filepath.IsAbs(s) || strings.HasPrefix(s, ".") {
		return true
	}
	return strings.HasSuffix(s, ".tar") || strings.HasSuffix(s, ".tar.gz") || strings.HasSuffix(s, ".tgz")
}
