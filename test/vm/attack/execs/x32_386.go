package main

import "errors"

func execX32() error {
	return errors.New("a 32-bit program cannot make x32 calls")
}
