package inspect

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// NodeCredentials is the default scheduler's kubeconfig on a node, with the files it refers to read
// in. Printing or marshalling it never shows the key.
type NodeCredentials struct {
	// Path is the kubeconfig's path on the node.
	Path string
	// Raw is the file's content. It may include the key.
	Raw []byte
	// Server is the API server's address, often https://localhost:…, which only works in the node's
	// host network.
	Server string
	// ServerName is the name in the API server's certificate if it is not the host of Server.
	ServerName string
	// User and Groups are the certificate's common name and organisations.
	User   string
	Groups []string
	// Subject, NotBefore and Expires are from the client certificate.
	Subject            string
	NotBefore, Expires time.Time
	// CA, Cert and Key are PEM. CA is empty if the kubeconfig has none.
	CA, Cert, Key []byte
}

// ReadNodeCredentials reads the kubeconfig at a path on the node whose root is nodeRoot (empty
// means "/"), and the certificate and key files that it refers to. It fails if a file cannot be
// read, if the client certificate or its key is missing, or if the certificate has expired.
func ReadNodeCredentials(nodeRoot, path string) (*NodeCredentials, error) {
	credentials, err := LoadNodeCredentials(nodeRoot, path)
	if err != nil {
		return nil, err
	}
	if err := credentials.check(time.Now()); err != nil {
		return nil, err
	}
	return credentials, nil
}

const tryServiceAccount = "deploy with --credentials serviceaccount, or specify another file"

// LoadNodeCredentials is ReadNodeCredentials without the check whether the
// certificate is usable now.
func LoadNodeCredentials(nodeRoot, path string) (*NodeCredentials, error) {
	raw, err := readNodeFile(nodeRoot, path)
	if err != nil {
		return nil, err
	}
	credentials := &NodeCredentials{Path: path, Raw: raw}
	if err := credentials.parse(nodeRoot); err != nil {
		return nil, problem.Errorf(tryServiceAccount, "read kubeconfig %s: %w", path, err)
	}
	return credentials, nil
}

// parse sets the fields from Raw and the files that it refers to.
func (c *NodeCredentials) parse(nodeRoot string) error {
	config, err := clientcmd.Load(c.Raw)
	if err != nil {
		// The decoder's error quotes the content, which may be the key.
		return errors.New("not a kubeconfig")
	}
	cluster, user, err := currentContext(config)
	if err != nil {
		return err
	}
	c.Server, c.ServerName = cluster.Server, cluster.TLSServerName
	for _, part := range []struct {
		what string
		data []byte
		file string
		into *[]byte
	}{
		{"certificate authority", cluster.CertificateAuthorityData, cluster.CertificateAuthority, &c.CA},
		{"client certificate", user.ClientCertificateData, user.ClientCertificate, &c.Cert},
		{"client key", user.ClientKeyData, user.ClientKey, &c.Key},
	} {
		if *part.into, err = c.inlineOrFile(nodeRoot, part.data, part.file); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	if len(c.Cert) == 0 {
		return errors.New("the user has no client certificate")
	}
	chain := certificates(c.Cert)
	if len(chain) == 0 {
		return errors.New("the client certificate is not PEM")
	}
	if len(c.CA) > 0 && len(certificates(c.CA)) == 0 {
		return errors.New("the certificate authority is not PEM")
	}
	leaf := chain[0]
	c.User, c.Groups = leaf.Subject.CommonName, leaf.Subject.Organization
	c.Subject, c.NotBefore, c.Expires = leaf.Subject.String(), leaf.NotBefore, leaf.NotAfter
	return nil
}

// inlineOrFile returns data or, if it is empty, the file's content, which may be relative to the
// kubeconfig.
func (c *NodeCredentials) inlineOrFile(nodeRoot string, data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(c.Path), file)
	}
	return readNodeFile(nodeRoot, file)
}

// currentContext returns the cluster and user in the current context, or in the only context.
func currentContext(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	name := config.CurrentContext
	if name == "" && len(config.Contexts) == 1 {
		for only := range config.Contexts {
			name = only
		}
	}
	if name == "" {
		return nil, nil, errors.New("no current context")
	}
	selected := config.Contexts[name]
	if selected == nil {
		return nil, nil, fmt.Errorf("no context %q", name)
	}
	cluster, user := config.Clusters[selected.Cluster], config.AuthInfos[selected.AuthInfo]
	if cluster == nil {
		return nil, nil, fmt.Errorf("no cluster %q", selected.Cluster)
	}
	if user == nil {
		return nil, nil, fmt.Errorf("no user %q", selected.AuthInfo)
	}
	return cluster, user, nil
}

// check fails unless the certificate is usable now.
func (c *NodeCredentials) check(now time.Time) error {
	unusable := func(try, format string, args ...any) error {
		return problem.Errorf(try, "check client certificate of %s: %w", c.Path, fmt.Errorf(format, args...))
	}
	if now.After(c.Expires) {
		return unusable("renew the node's certificates, or deploy with --credentials serviceaccount",
			"it expired on %s (subject %s)", c.Expires.Format(time.RFC3339), c.Subject)
	}
	if now.Before(c.NotBefore) {
		return unusable("check the clock of this machine", "it is valid only from %s (subject %s)",
			c.NotBefore.Format(time.RFC3339), c.Subject)
	}
	if len(c.Key) == 0 {
		return unusable(tryServiceAccount, "the kubeconfig has no key")
	}
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		return unusable(tryServiceAccount, "the key does not match: %w", err)
	}
	return nil
}

// String returns the kubeconfig's path and the certificate's subject and expiry.
func (c NodeCredentials) String() string {
	return fmt.Sprintf("%s (%s, expires %s)", c.Path, c.Subject, c.Expires.Format(time.RFC3339))
}

// Format writes String for every verb, so that none prints the key.
func (c NodeCredentials) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.String())
}

// MarshalJSON returns Credentials, without the key.
func (c NodeCredentials) MarshalJSON() ([]byte, error) {
	return json.Marshal(Credentials{
		Kubeconfig: c.Path, Server: c.Server, User: c.User, Groups: append([]string{}, c.Groups...),
		Subject: c.Subject, Expires: &c.Expires,
	})
}
