// Package vault keeps secrets in an encrypted file (V9) and makes HTTP requests with them (V1 to V8): the secret goes into one header of
// one request to a host that was checked, and what comes back is handed on without it. It decides nothing about who may use a secret;
// it never prints one, never puts one into an error, and hands one to nobody but the server that it is for.
package vault
