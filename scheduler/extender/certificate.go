package extender

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// TLSFiles are an HTTPS server's files. They are read again when they change, so that a renewed
// certificate needs no restart.
type TLSFiles struct {
	// CertFile and KeyFile are the server's certificate chain and its key.
	CertFile, KeyFile string
	// ClientCAFile holds the CAs of client certificates.
	ClientCAFile string
}

// checkInterval is the minimum interval between checks of the files, which a new connection
// triggers.
const checkInterval = 5 * time.Second

// config returns a server's TLS configuration, nil without TLS.
func (f TLSFiles) config(log *zap.Logger) (*tls.Config, error) {
	switch {
	case f == TLSFiles{}:
		return nil, nil
	case f.CertFile == "" || f.KeyFile == "":
		return nil, &optionError{"TLS requires a certificate file and a key file"}
	}
	c := &certificates{files: f, log: log, now: time.Now}
	current, err := c.load()
	if err != nil {
		return nil, &optionError{err.Error()}
	}
	c.current, c.checked = current, c.now()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return c.latest(), nil
	}}, nil
}

// certificates are the last usable contents of the files.
type certificates struct {
	files TLSFiles
	log   *zap.Logger
	now   func() time.Time

	mu      sync.Mutex
	checked time.Time
	texts   [3][]byte
	current *tls.Config
	failed  bool
}

// latest returns the TLS configuration for the current files, or, if they cannot be used, for the
// previous ones.
func (c *certificates) latest() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.checked) < checkInterval {
		return c.current
	}
	c.checked = c.now()
	fresh, err := c.load()
	switch {
	case err != nil && !c.failed:
		c.log.Error("the changed certificate cannot be used; using the previous one", zap.Error(err))
	case err == nil && fresh != c.current:
		c.log.Info("reloaded the certificate", zap.String("file", c.files.CertFile))
		c.current = fresh
	}
	c.failed = err != nil
	return c.current
}

// load reads the files. If they have not changed it returns the previous result.
func (c *certificates) load() (*tls.Config, error) {
	var texts [3][]byte
	for i, name := range []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile} {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the server's certificate: %w", err)
		}
		texts[i] = text
	}
	if c.current != nil && bytes.Equal(texts[0], c.texts[0]) && bytes.Equal(texts[1], c.texts[1]) &&
		bytes.Equal(texts[2], c.texts[2]) {
		return c.current, nil
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("read certificate %s with key %s: %w", c.files.CertFile, c.files.KeyFile, err)
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if c.files.ClientCAFile != "" {
		made.ClientCAs = x509.NewCertPool()
		if !made.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return nil, fmt.Errorf("read client CAs %s: no certificate found", c.files.ClientCAFile)
		}
		// Probes have no certificate; Serve requires one where necessary.
		made.ClientAuth = tls.VerifyClientCertIfGiven
	}
	c.texts = texts
	return made, nil
}
