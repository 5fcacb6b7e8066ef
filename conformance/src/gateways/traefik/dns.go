// Package dns replaces lego's list of DNS providers, whose SDKs are half of Traefik's build. They
// only prove to a certificate authority that a domain is one's own.
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
)

// NewDNSChallengeProviderByName refuses every name.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("this build has no DNS provider %q", name)
}
