// Package form compares commands by what a shell makes of them, not by how they
// are written: it recognises a command that was approved as text in what is then
// seen to be executed, through the wrapping that agents put around it (G26).
//
// It only compares. It runs nothing, reads no file, and knows no approval. What
// it does not understand is not recognised.
package form
