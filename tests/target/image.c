/* An image for a target host. */
__attribute__((visibility("default"))) int which_image(void) {
    return WHICH;
}
