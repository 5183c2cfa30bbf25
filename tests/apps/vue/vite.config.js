import vue from '@vitejs/plugin-vue';

export default { base: '/shelf/', plugins: [vue()] };
