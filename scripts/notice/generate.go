package main

//go:generate go run . ../../NOTICE
