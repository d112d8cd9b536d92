package spec

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// document is pmk-sched.yaml, or a revision's recorded request.
type document struct {
	*v1alpha1.CustomScheduler
	// dir is the directory that relative paths start from.
	dir string
	// regular reports whether the document comes from a file that can be read again, and not from
	// standard input or a pipe.
	regular bool
	// absent reports whether there is neither a file nor a recorded request.
	absent bool
	// local is set for pmk-sched.yaml, and where there is no file: the user names files on this
	// machine. Every other document comes from a cluster, see [deploy.Installed], from origin.
	// built is [deploy.Installed.Built].
	local  bool
	origin string
	built  *v1alpha1.Recipe
	// notes say what was read if the file is not pmk-sched.yaml alone.
	notes []string
	// copied is the source of the inline configuration, or nil.
	copied *deploy.CopiedFrom
	// confirmed is set for a document from a cluster whose permissions need no confirmation.
	confirmed bool
}

// readDocument reads pmk-sched.yaml once. "-" is standard input; an empty name gives an empty
// document.
func readDocument(flag, name string, stdin io.Reader) (*document, error) {
	switch name {
	case "":
		return &document{CustomScheduler: &v1alpha1.CustomScheduler{}, local: true, absent: true}, nil
	case "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return parseDocument("standard input", text)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %s", flag, strings.Replace(err.Error(), "stat ", "open ", 1))
	}
	text, err := problem.ReadFile(flag, name)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(name, text)
	if err == nil && info.Mode().IsRegular() {
		d.dir, d.regular = filepath.Dir(name), true
	}
	return d, err
}

// parseDocument decodes and validates a file.
func parseDocument(name string, text []byte) (*document, error) {
	d := &document{local: true}
	err := d.parse(name, text)
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %w", name, err)
	}
	return d, nil
}

// parse reads pmk-sched.yaml, also among other objects, or the manifests of a scheduler that was
// set up without pmk-sched.
func (d *document) parse(name string, text []byte) (err error) {
	own, others := findOwn(text)
	if own != nil {
		text = own
		d.notes = others
	}
	d.CustomScheduler, err = v1alpha1.Decode(text)
	if err == nil || own != nil {
		return err
	}
	found, wrong := handmade.Read(name, text)
	if wrong != nil {
		return wrong
	}
	if found == nil {
		return err
	}
	d.CustomScheduler = found.Request
	d.copied = &deploy.CopiedFrom{Name: name, Places: found.Places}
	for _, i := range found.Items {
		if i.Action != handmade.Kept {
			d.notes = append(d.notes, fmt.Sprintf("%s: %s: %s", i.Action, i.Subject, i.Detail))
		}
	}
	return nil
}

// findOwn returns the document of the only CustomScheduler in a source, at its lines, and notes
// about the other objects. It returns nil if there is none, or several.
func findOwn(text []byte) (own []byte, notes []string) {
	parts, _ := schema.Parts(text)
	for _, part := range parts {
		for _, o := range part.Objects {
			switch {
			case node.Text(o, "kind") != v1alpha1.Kind:
				notes = append(notes, "not read: "+strings.TrimSpace(node.Text(o, "kind")+" "+node.Text(o, "metadata", "name")))
			case own != nil:
				return nil, nil
			case len(part.Objects) == 1:
				own = part.Text
			default:
				own, _ = schema.Encode(o)
			}
		}
	}
	return own, notes
}

// Notes says what was read from the file if it is not pmk-sched.yaml alone.
func (s *Spec) Notes() []string { return s.file.notes }

// Request returns the request that a revision records, with the contents of the files that it
// names, and with complete paths.
func (s *Spec) Request() (*v1alpha1.CustomScheduler, error) {
	r := s.request.DeepCopy()
	c := &r.Spec.Configuration
	if c.File != "" && c.Inline == "" {
		text, err := s.readConfiguration(c)
		if err != nil {
			return nil, err
		}
		c.Inline = v1alpha1.Document(text)
	}
	key, err := ReadKey(r.Spec.Image.RequireSignature)
	if err != nil {
		return nil, err
	}
	r.Spec.Image.RequireSignature = key
	for i := range r.Spec.Extenders {
		if err := readTLS(s.file, fmt.Sprintf("spec.extenders[%d]", i), &r.Spec.Extenders[i]); err != nil {
			return nil, err
		}
	}
	r.Spec.Source.Branch = s.file.Spec.Source.Branch
	if s.chosen {
		r.Spec.Credentials = s.file.Spec.Credentials
	}
	return r, nil
}

// keyFile returns the path to the public key in spec.image.requireSignature, or the key itself.
func (d *document) keyFile() (string, error) {
	key := d.Spec.Image.RequireSignature
	if key == "" || key == v1alpha1.NoSignature || isPEM(key) {
		return key, nil
	}
	return d.path("spec.image.requireSignature", key)
}

func isPEM(text string) bool { return strings.HasPrefix(text, "-----BEGIN ") }

// ReadKey returns the public key, in PEM, from --require-signature: a file or the key itself. It
// returns "" and [v1alpha1.NoSignature] unchanged.
func ReadKey(given string) (string, error) {
	if given == "" || given == v1alpha1.NoSignature {
		return given, nil
	}
	text := []byte(given)
	if !isPEM(given) {
		var err error
		if text, err = problem.ReadFile("--require-signature", given); err != nil {
			return "", err
		}
	}
	key, _, err := pack.ParseKey(text)
	if err != nil {
		return "", fmt.Errorf("read --require-signature: %w", err)
	}
	return key, nil
}

// readConfiguration reads the file for --config or spec.configuration.file, and makes its name
// relative to the working directory.
func (s *Spec) readConfiguration(c *v1alpha1.Configuration) ([]byte, error) {
	if s.flags.Config != "" {
		return problem.ReadFile("--config", c.File)
	}
	path, err := s.file.path("spec.configuration.file", c.File)
	if err != nil {
		return nil, err
	}
	c.File = path
	text, err := os.ReadFile(c.File)
	if err != nil {
		return nil, problem.Invalidf("", "read spec.configuration.file: %w", err)
	}
	return text, nil
}

// readTLS reads the files that tlsConfig names: the CA goes into the configuration, certificate and
// key into a Secret that the scheduler's pod mounts.
func readTLS(d *document, path string, e *v1alpha1.Extender) error {
	t := e.TLSConfig
	if t == nil || e.IsDeployed() {
		return nil
	}
	if t.CA == v1alpha1.CAAuto {
		return problem.Invalidf("name a file with the certificates of its CA",
			"extender %s: tlsConfig.ca: auto is valid for an extender that pmk-sched deploys only", e.Name)
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return problem.Invalidf("", "extender %s: tlsConfig.certFile and tlsConfig.keyFile are required together", e.Name)
	}
	var err error
	read := func(field, name, kind string, content *[]byte) {
		if err == nil && name != "" && *content == nil {
			*content, err = readPEM(d, e.Name, path+".tlsConfig."+field, name, kind)
		}
	}
	read("ca", t.CA, "CERTIFICATE", &t.CAData)
	read("certFile", t.CertFile, "CERTIFICATE", &t.CertData)
	read("keyFile", t.KeyFile, "PRIVATE KEY", &t.KeyData)
	if err == nil && len(t.CertData)+len(t.KeyData) > 0 {
		if _, wrong := tls.X509KeyPair(t.CertData, t.KeyData); wrong != nil {
			err = problem.Invalidf("give a client certificate and its private key",
				"extender %s: tlsConfig.certFile and tlsConfig.keyFile: %w", e.Name, wrong)
		}
	}
	return err
}

// readPEM reads a file and checks that it starts with a PEM block of the given kind.
func readPEM(d *document, extender, field, name, kind string) ([]byte, error) {
	name, err := d.path(field, name)
	if err != nil {
		return nil, err
	}
	_, short, _ := strings.Cut(field, ".tlsConfig.")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, problem.Invalidf("", "extender %s: read tlsConfig.%s: %w", extender, short, err)
	}
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil || !strings.HasSuffix(block.Type, kind) {
		return nil, problem.Invalidf("", "extender %s: tlsConfig.%s: %s does not contain a PEM-encoded %s", extender, short,
			name, strings.ToLower(kind))
	}
	return text, nil
}
