package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

const (
	// labelsExtension is the extension in a kubeconfig context with its cluster's labels.
	labelsExtension = "pmk-sched.io/labels"
	// maxKubeconfig bounds a file in a directory, in bytes, and maxFiles their number.
	maxKubeconfig = 1 << 20
	maxFiles      = 10_000
)

// contexts returns a cluster for each context that matches a pattern.
func contexts(base kubeapi.ConnectOptions, pattern string) ([]Cluster, error) {
	if pattern == "" {
		pattern = "*"
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, problem.Invalidf("", "invalid --context %q: %w", pattern, err)
	}
	kubeconfig, err := kubeapi.LoadKubeconfig(base)
	if err != nil {
		return nil, err
	}
	if len(kubeconfig.Contexts) == 0 {
		return nil, kubeapi.ErrNoKubeconfig
	}
	var list []Cluster
	for _, name := range slices.Sorted(maps.Keys(kubeconfig.Contexts)) {
		// context names contain slashes, which * of path.Match does not match
		matches, _ := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
		if !matches {
			continue
		}
		c := Cluster{Name: name}
		c.err = c.use(base, kubeconfig, name)
		list = append(list, c)
	}
	return list, nil
}

// use sets the labels and the connection from a context in a kubeconfig.
func (c *Cluster) use(base kubeapi.ConnectOptions, kubeconfig *clientcmdapi.Config, context string) error {
	one, err := minify(kubeconfig, context)
	if err != nil {
		return err
	}
	c.connection = loaded(base, one)
	c.Labels, err = contextLabels(kubeconfig.Contexts[context])
	return err
}

// contextLabels returns the labels in a context's extension.
func contextLabels(context *clientcmdapi.Context) (map[string]string, error) {
	extension, ok := context.Extensions[labelsExtension].(*runtime.Unknown)
	if !ok {
		return nil, nil
	}
	var found map[string]string
	if err := json.Unmarshal(extension.Raw, &found); err != nil {
		return nil, problem.Invalidf("", "read extension %s of the context: must be a map of strings", labelsExtension)
	}
	return found, nil
}

// directory returns the clusters for the kubeconfigs in a directory, named after the files without
// extension. They are the user's files, and trusted like a kubeconfig.
func directory(base kubeapi.ConnectOptions, dir string) ([]Cluster, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read --from: %w", err)
	}
	var list []Cluster
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		info, err := os.Stat(file) // links too
		if strings.HasPrefix(entry.Name(), ".") || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if len(list) == maxFiles {
			return nil, problem.Invalidf("", "read --from %s: more than %d files", dir, maxFiles)
		}
		c := Cluster{Name: strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))}
		if err == nil && info.Size() > maxKubeconfig {
			err = fmt.Errorf("larger than %d bytes", maxKubeconfig)
		}
		var kubeconfig *clientcmdapi.Config
		if err == nil {
			kubeconfig, err = readKubeconfig(file)
		}
		if err == nil {
			err = c.use(base, kubeconfig, cmp.Or(base.Context, kubeconfig.CurrentContext))
		}
		if err != nil {
			c.err = fmt.Errorf("read kubeconfig %s: %w", file, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// readKubeconfig reads a kubeconfig whose relative paths start at its directory.
func readKubeconfig(file string) (*clientcmdapi.Config, error) {
	kubeconfig, err := clientcmd.LoadFromFile(file)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(kubeconfig)
	}
	return kubeconfig, err
}
